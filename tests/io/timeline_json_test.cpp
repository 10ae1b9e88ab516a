#include "ballast/io/timeline_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ballast/io/atomic_file.h"

namespace ballast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ParallelDims kDims{.dp = 1, .pp = 2, .cp = 2};

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

Span forward(int rank, std::int64_t step, Seconds begin, Seconds end) {
  return {.rank = rank, .step = step, .kind = SpanKind::F, .stage = 0, .micro_batch = 0, .begin = begin, .end = end};
}

rc::Gen<Span> any_span() {
  // Multiples of the resolution, so that nothing is lost.
  const auto seconds = rc::gen::map(rc::gen::inRange<std::int64_t>(0, 1000000000000),
                                    [](std::int64_t t) { return static_cast<double>(t) / 1e7; });
  const auto label = rc::gen::inRange(-1, 9);
  return rc::gen::exec([=] {
    return Span{.rank = *rc::gen::inRange(0, 4),
                .step = *rc::gen::inRange<std::int64_t>(0, 4),
                .kind = static_cast<SpanKind>(*rc::gen::inRange(0, 15)),
                .stage = *label,
                .micro_batch = *label,
                .layer = *label,
                .begin = *seconds,
                .end = *seconds,
                .wait = *seconds,
                .lease = *seconds,
                .bytes = *rc::gen::inRange<Bytes>(0, Bytes{1} << 40),
                .peer = *rc::gen::inRange(-1, 4),
                .axis = static_cast<Axis>(*rc::gen::inRange(0, 6))};
  });
}

class TimelineFile : public ::testing::Test {
 protected:
  TimelineFile() { std::filesystem::create_directories(folder_); }
  ~TimelineFile() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("ballast_timeline_" + std::to_string(::getpid()));
  std::filesystem::path path_ = folder_ / "predicted.jsonl";
};

RC_GTEST_PROP(TimelineJson, RoundTrips, ()) {
  const Timeline timeline{
      .source = "measured", .dims = kDims, .spans = *rc::gen::container<std::vector<Span>>(any_span())};
  RC_ASSERT(timeline_from_json(to_json(timeline), "text") == timeline);
}

TEST(TimelineJson, WritesTimesWithATenthOfAMicrosecond) {
  const Timeline timeline{.source = "measured", .dims = {}, .spans = {forward(0, 3, 1.00000004, 12.5)}};
  EXPECT_EQ(to_json(timeline),
            "{\"version\":1,\"source\":\"measured\",\"dims\":{\"dp\":1,\"pp\":1,\"cp\":1}}\n"
            "{\"step\":3,\"spans\":[[0,\"F\",0,0,-1,1,12.5,0,0,0,-1,\"none\"]]}\n");
}

TEST(TimelineJson, RefusesMalformedTextNamingTheLineAndTheKey) {
  const std::string good = to_json({.source = "measured", .dims = kDims, .spans = {forward(0, 3, 1, 2)}});
  const auto read = [](const std::string& text) { return refusal([&] { timeline_from_json(text, "t.jsonl"); }); };
  EXPECT_EQ(read(good), "");
  EXPECT_THAT(read(""), HasSubstr("t.jsonl: holds no timeline"));
  EXPECT_THAT(read(replaced(good, "\"version\":1", "\"version\":0")),
              HasSubstr("t.jsonl line 1: version: 0 is not known"));
  EXPECT_THAT(read(replaced(good, "\"F\"", "\"G\"")),
              AllOf(HasSubstr("t.jsonl line 2: spans[0][1]: "), HasSubstr("\"G\" is not a kind of span")));
  EXPECT_THAT(read(replaced(good, "\"none\"", "\"up\"")), HasSubstr("spans[0][11]: \"up\" is not an axis"));
  EXPECT_THAT(read(replaced(good, "[[0,", "[[4,")), HasSubstr("spans[0][0]: 4 is too large: 3 or less"));
  EXPECT_THAT(read(replaced(good, "-1,\"none\"]", "-1]")), HasSubstr("spans[0]: must be a list of 12 entries, not 11"));
  EXPECT_THAT(read(replaced(good, "\"cp\":2", "\"cp\":2000000")), HasSubstr("line 1: dims.cp"));
}

TEST(TimelineJson, IgnoresALineThatAKilledRunDidNotFinish) {
  const Timeline timeline{.source = "measured", .dims = kDims, .spans = {forward(0, 0, 1, 2)}};
  EXPECT_EQ(timeline_from_json(to_json(timeline) + "{\"step\":1,\"spa", "text"), timeline);
}

TEST_F(TimelineFile, GrowsByALineAStepAndReadsAsOne) {
  const std::vector<Span> spans{forward(0, 0, 0, 1), forward(1, 0, 0, 2), forward(0, 1, 2, 3)};
  TimelineWriter writer(path_, "predicted", kDims);
  writer.append({spans[0], spans[1]});
  EXPECT_EQ(read_timeline(path_).spans.size(), 2U) << "a step is in the file as soon as it is appended";
  writer.append({spans[2]});
  EXPECT_EQ(read_timeline(path_), (Timeline{.source = "predicted", .dims = kDims, .spans = spans}));
}

TEST_F(TimelineFile, AResumedRunGoesOnAtItsFirstStep) {
  {
    TimelineWriter writer(path_, "predicted", kDims);
    writer.append({forward(0, 0, 0, 1), forward(0, 1, 1, 2), forward(0, 2, 2, 3)});
  }
  std::ofstream(path_, std::ios::app) << "{\"step\":3,\"spans\":[[0,";
  {
    TimelineWriter writer(path_, "predicted", kDims, 2);
    writer.append({forward(0, 2, 5, 6)});
  }
  EXPECT_EQ(read_timeline(path_).spans,
            (std::vector<Span>{forward(0, 0, 0, 1), forward(0, 1, 1, 2), forward(0, 2, 5, 6)}));
}

TEST_F(TimelineFile, OfAnotherRunIsNotContinued) {
  { TimelineWriter writer(path_, "predicted", kDims); }
  EXPECT_TRUE(read_timeline(path_).spans.empty());
  EXPECT_THAT(refusal([&] { TimelineWriter(path_, "measured", kDims); }),
              AllOf(HasSubstr(path_.string()), HasSubstr("another timeline")));
  EXPECT_THAT(refusal([&] { TimelineWriter(path_, "predicted", ParallelDims{}); }), HasSubstr("another timeline"));
}

TEST_F(TimelineFile, OfAllRanksIsReadFromTheRunsFolder) {
  EXPECT_THAT(refusal([&] { read_run_timeline(folder_, "measured"); }), HasSubstr("holds no measured-rank-"));
  for (const int rank : {1, 0}) {
    TimelineWriter(folder_ / measured_timeline_name(rank), "measured", kDims).append({forward(rank, 0, 0, 1 + rank)});
  }
  EXPECT_EQ(read_run_timeline(folder_, "measured").spans,
            (std::vector<Span>{forward(0, 0, 0, 1), forward(1, 0, 0, 2)}));
  EXPECT_THAT(refusal([&] { read_run_timeline(folder_, "replayed"); }), HasSubstr("replayed.jsonl: cannot be read"));
}

}  // namespace
}  // namespace ballast
