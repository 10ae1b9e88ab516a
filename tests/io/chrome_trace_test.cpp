#include "ballast/io/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ballast/base/error.h"

namespace ballast {
namespace {

using nlohmann::json;

Span span(int rank, std::int64_t step, SpanKind kind, Seconds begin, Seconds end) {
  Span s;
  s.rank = rank;
  s.step = step;
  s.kind = kind;
  s.begin = begin;
  s.end = end;
  return s;
}

// Two pipeline ranks, one micro-batch: forward, send to the other rank, which waited 2 s for it.
Timeline two_ranks() {
  Timeline timeline{"measured", {.dp = 1, .pp = 2, .cp = 1}, {}};
  Span forward = span(0, 3, SpanKind::F, 10, 12);
  forward.stage = forward.micro_batch = 0;
  Span gather = span(0, 3, SpanKind::GATHER_KV, 10.5, 11);
  gather.axis = Axis::cp;
  gather.layer = 1;
  gather.bytes = 4096;
  Span send = span(0, 3, SpanKind::SEND_F, 12, 12.5);
  send.stage = send.micro_batch = 0;
  send.peer = 1;
  send.bytes = 256;
  Span receive = span(1, 3, SpanKind::RECV_F, 10, 12.5);
  receive.stage = 1;
  receive.micro_batch = 0;
  receive.peer = 0;
  receive.wait = 2;
  receive.lease = 0.25;
  timeline.spans = {forward, gather, send, receive};
  return timeline;
}

json trace_of(const Timeline& timeline, const ChromeTraceOptions& options = {}) {
  std::string text;
  write_chrome_trace(timeline, options, [&](std::string_view piece) { text += piece; });
  return json::parse(text);
}

std::vector<json> events_of(const json& trace, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

json event_named(const json& trace, const std::string& name) {
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == name) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

TEST(ChromeTrace, GivesEveryEventTheFieldsThatViewersNeed) {
  const json trace = trace_of(two_ranks());
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 2);
  for (const json& event : trace["traceEvents"]) {
    EXPECT_TRUE(event["name"].is_string());
    EXPECT_TRUE(event["ts"].is_number());
    EXPECT_TRUE(event["pid"].is_number_integer());
    EXPECT_TRUE(event["tid"].is_number_integer());
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_FALSE(event["cat"].get<std::string>().empty());
  }
}

TEST(ChromeTrace, NamesAProcessARankAndSortsThem) {
  const json trace = trace_of(two_ranks());
  std::map<int, std::string> names;
  std::map<int, int> order;
  for (const json& event : events_of(trace, "M")) {
    if (event["name"] == "process_name") names[event["pid"]] = event["args"]["name"];
    if (event["name"] == "process_sort_index") order[event["pid"]] = event["args"]["sort_index"];
  }
  EXPECT_EQ(names[1], "rank 1 (dp 0, pp 1, cp 0), measured");
  EXPECT_EQ(order, (std::map<int, int>{{0, 0}, {1, 1}}));
}

TEST(ChromeTrace, WritesMicroseconds) {
  const json forward = event_named(trace_of(two_ranks()), "F0");
  EXPECT_DOUBLE_EQ(forward["ts"].get<double>(), 10e6);
  EXPECT_DOUBLE_EQ(forward["dur"].get<double>(), 2e6);
  EXPECT_EQ(forward["args"]["step"], 3);
}

TEST(ChromeTrace, DescribesCollectivesAsKinetoDoes) {
  const json args = event_named(trace_of(two_ranks()), "GATHER_KV")["args"];
  EXPECT_EQ(args["Collective name"], "allgather");
  EXPECT_EQ(args["Group size"], 1);
  EXPECT_EQ(args["Process Group Name"], "cp");
  EXPECT_EQ(args["In msg nelems"], 4096);
  EXPECT_EQ(args["layer"], 1);
}

TEST(ChromeTrace, PutsWaitsInsideTheirSpanInTheOrderTheyHappen) {
  const json trace = trace_of(two_ranks());
  const json peer = event_named(trace, "waits for a rank");
  const json core = event_named(trace, "waits for a core");
  EXPECT_DOUBLE_EQ(peer["ts"].get<double>(), 10e6);
  EXPECT_DOUBLE_EQ(peer["dur"].get<double>(), 2e6);
  EXPECT_DOUBLE_EQ(core["ts"].get<double>(), 12e6);
  EXPECT_DOUBLE_EQ(core["dur"].get<double>(), 0.25e6);
}

TEST(ChromeTrace, TiesEverySendToItsReceive) {
  const json trace = trace_of(two_ranks());
  const auto starts = events_of(trace, "s");
  const auto ends = events_of(trace, "f");
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(starts[0]["id"], ends[0]["id"]);
  EXPECT_EQ(starts[0]["name"], ends[0]["name"]);
  EXPECT_EQ(starts[0]["cat"], ends[0]["cat"]);
  EXPECT_EQ(starts[0]["pid"], 0);
  EXPECT_EQ(ends[0]["pid"], 1);
  EXPECT_EQ(ends[0]["bp"], "e");
}

TEST(ChromeTrace, LaysStepsThatBeginAtZeroEndToEnd) {
  Timeline timeline{"predicted", {}, {span(0, 0, SpanKind::F, 0, 2), span(0, 1, SpanKind::F, 0, 3)}};
  std::vector<double> begins;
  for (const json& event : events_of(trace_of(timeline), "X")) {
    if (event["cat"] == "compute") begins.push_back(event["ts"]);
  }
  EXPECT_EQ(begins, (std::vector<double>{0, 2e6}));
}

TEST(ChromeTrace, MarksEachStepOfEachRank) {
  const json step = event_named(trace_of(two_ranks()), "ProfilerStep#3");
  EXPECT_DOUBLE_EQ(step["ts"].get<double>(), 10e6);
  EXPECT_DOUBLE_EQ(step["dur"].get<double>(), 2.5e6);
}

TEST(ChromeTrace, OfOneRankHoldsNothingOfTheOthers) {
  const json trace = trace_of(two_ranks(), {.rank = 1, .device = ""});
  EXPECT_EQ(trace["distributedInfo"]["rank"], 1);
  for (const json& event : trace["traceEvents"]) EXPECT_EQ(event["pid"], 1);
  EXPECT_TRUE(events_of(trace, "f").empty());
}

TEST(ChromeTrace, RefusesARankThatTheRunDoesNotHave) {
  EXPECT_THROW(trace_of(two_ranks(), {.rank = 2, .device = ""}), UserError);
}

TEST(ChromeTrace, OfNothingIsStillATrace) { EXPECT_TRUE(events_of(trace_of({"measured", {}, {}}), "X").empty()); }

}  // namespace
}  // namespace ballast
