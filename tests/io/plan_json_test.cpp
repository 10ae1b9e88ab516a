#include "ballast/io/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "ballast/io/atomic_file.h"

namespace ballast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

rc::Gen<Document> any_document() {
  return rc::gen::apply(
      [](std::int64_t id, std::int64_t arrival, Tokens begin, Tokens length, int domain, bool ends, std::int64_t due) {
        return Document{.id = id,
                        .arrival = arrival,
                        .begin = begin,
                        .length = length,
                        .domain = domain,
                        .ends = ends,
                        .due_step = due};
      },
      rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40), rc::gen::inRange<std::int64_t>(0, 1000),
      rc::gen::inRange<Tokens>(0, 100000), rc::gen::inRange<Tokens>(0, 100000), rc::gen::inRange(0, 5),
      rc::gen::arbitrary<bool>(), rc::gen::inRange<std::int64_t>(0, 100));
}

rc::Gen<MicroBatch> any_micro_batch() {
  return rc::gen::map(rc::gen::container<std::vector<Document>>(any_document()),
                      [](std::vector<Document> documents) { return MicroBatch{std::move(documents)}; });
}

ShardPlan whole_on_rank_0(const MicroBatch& micro_batch, int num_ranks) {
  ShardPlan plan{.sharding = "by hand", .cu_seqlens = micro_batch.cu_seqlens(), .ranges = {}};
  plan.ranges.resize(static_cast<std::size_t>(num_ranks));
  if (plan.num_tokens() > 0) plan.ranges[0].push_back({0, plan.num_tokens()});
  return plan;
}

StepPlan small_plan() {
  StepPlan plan;
  plan.step = 7;
  plan.dims = {.dp = 1, .pp = 1, .cp = 2};
  plan.stage_layers = {2};
  const MicroBatch micro_batch{{{.id = 3, .arrival = 5, .length = 8}}};
  plan.micro_batches = {{micro_batch}};
  plan.shard_plans = {{whole_on_rank_0(micro_batch, 2)}};
  plan.schedule = parse_schedule("schedule 1f1b ranks 1 virtual_stages 1 micro_batches 1\n0F0 0B0\n");
  return plan;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

class PlanFile : public ::testing::Test {
 protected:
  ~PlanFile() override { std::filesystem::remove(path_); }
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("ballast_plan_" + std::to_string(::getpid()) + ".jsonl");
};

RC_GTEST_PROP(PlanJson, PackedStepsRoundTrip, ()) {
  const PackedStep step{.step = *rc::gen::inRange<std::int64_t>(0, 1000),
                        .micro_batches = *rc::gen::container<std::vector<MicroBatch>>(any_micro_batch())};
  RC_ASSERT(packed_step_from_json(to_json(step), "text") == step);
}

RC_GTEST_PROP(PlanJson, PackerStatesRoundTrip, ()) {
  const auto documents = rc::gen::container<std::vector<Document>>(any_document());
  const auto count = rc::gen::inRange<std::int64_t>(0, 1000);
  const PackerState state{.next_step = *count,
                          .batches_taken = *count,
                          .pending = *documents,
                          .queues = *rc::gen::container<std::vector<std::vector<Document>>>(documents),
                          .ready = {PackedStep{.step = *count, .micro_batches = {{.documents = *documents}, {}}}},
                          .intake = *documents,
                          .window_position = *count,
                          .arrived_tokens = {*count, *count},
                          .counts = {*count, *count, *count, *count, *count}};
  RC_ASSERT(packer_state_from_json(to_json(state), "text") == state);
}

RC_GTEST_PROP(PlanJson, StepPlansRoundTripWithBoundariesThatFollowFromTheDocuments, ()) {
  StepPlan plan = small_plan();
  plan.step = *rc::gen::inRange<std::int64_t>(0, 1000);
  plan.dims.dp = *rc::gen::inRange(1, 4);
  plan.micro_batches.clear();
  plan.shard_plans.clear();
  for (int d = 0; d < plan.dims.dp; ++d) {
    plan.micro_batches.push_back({*any_micro_batch()});
    plan.shard_plans.push_back({whole_on_rank_0(plan.micro_batches.back().front(), 2)});
  }
  const std::string text = to_json(plan);
  RC_ASSERT(text.find("cu_seqlens") == std::string::npos);
  const StepPlan read = step_plan_from_json(text, "text");
  RC_ASSERT(read == plan);
  RC_ASSERT(read.digest() == plan.digest());
}

TEST(PlanJson, WritesTheFormatOfTheDocumentation) {
  EXPECT_EQ(
      to_json(PackedStep{
          .step = 2,
          .micro_batches =
              {{}, {{{.id = 1, .arrival = 4, .begin = 2, .length = 9, .domain = 3, .ends = false, .due_step = 1}}}}}),
      R"({"micro_batches":[{"documents":[]},{"documents":[[1,4,2,9,3,0,1]]}],"step":2,"version":1})");
  EXPECT_EQ(
      to_json(ShardPlan{.sharding = "per_document", .cu_seqlens = {0, 4}, .ranges = {{{0, 1}, {3, 4}}, {{1, 3}}}}),
      R"({"cu_seqlens":[0,4],"ranges":[[[0,1],[3,4]],[[1,3]]],"sharding":"per_document"})");
}

TEST(PlanJson, RingsAndMovesRoundTrip) {
  const ShardPlan plan{.sharding = "zeppelin",
                       .cu_seqlens = {0, 4, 6},
                       .ranges = {{{0, 1}, {3, 4}}, {{1, 3}}, {{4, 6}}},
                       .exchange = KvExchange::rings,
                       .rings = {{{0, 1}, {0}}},
                       .ranks_per_node = 2,
                       .moves = {{2, 1, 1}}};
  ASSERT_EQ(plan.violations(), Violations{});
  EXPECT_EQ(shard_plan_from_json(to_json(plan), "here"), plan);
  const ShardPlan all_local{
      .sharding = "zeppelin", .cu_seqlens = {0, 4}, .ranges = {{{0, 4}}, {}}, .exchange = KvExchange::rings};
  EXPECT_EQ(shard_plan_from_json(to_json(all_local), "here"), all_local);
}

TEST(PlanJson, ShardPlansRoundTrip) {
  const ShardPlan plan{.sharding = "per_document", .cu_seqlens = {0, 4, 4}, .ranges = {{{0, 1}, {3, 4}}, {{1, 3}}, {}}};
  EXPECT_EQ(shard_plan_from_json(to_json(plan), "text"), plan);
}

TEST(PlanJson, KeepsBoundariesThatContradictTheDocumentsForViolationsToFind) {
  StepPlan plan = small_plan();
  plan.shard_plans[0][0].cu_seqlens = {0, 4, 8};
  EXPECT_EQ(step_plan_from_json(to_json(plan), "text"), plan);
  EXPECT_FALSE(plan.violations().empty());
}

TEST(PlanJson, RefusesMalformedTextNamingWhereAndTheKey) {
  const std::string good = to_json(small_plan());
  const auto read = [](const std::string& text) {
    return refusal([&] { step_plan_from_json(text, "plan.jsonl line 3"); });
  };
  EXPECT_EQ(read(good), "");
  EXPECT_THAT(read(""), AllOf(StartsWith("plan.jsonl line 3: "), HasSubstr("is not JSON")));
  EXPECT_THAT(read(good.substr(0, good.size() / 2)), HasSubstr("is not JSON"));
  EXPECT_THAT(read("[1]"), HasSubstr("must be an object, not [1]"));
  EXPECT_THAT(read(replaced(good, "\"version\":1", "\"version\":9")),
              HasSubstr("version: 9 is not known: this program reads version 1"));
  EXPECT_THAT(read(replaced(good, "\"step\":7", "\"stp\":7")), HasSubstr("unknown key \"stp\""));
  EXPECT_THAT(read(replaced(good, "\"step\":7", "\"step\":-7")), HasSubstr("step: -7 is too small"));
  EXPECT_THAT(read(replaced(good, "\"step\":7", "\"step\":7.5")), HasSubstr("step: must be a whole number, not 7.5"));
  EXPECT_THAT(read(replaced(good, ",\"step\":7", "")), HasSubstr("key \"step\" is missing"));
  EXPECT_THAT(read(replaced(good, "\"cp\":2", "\"cp\":0")), HasSubstr("dims.cp: 0 is too small"));
  EXPECT_THAT(read(replaced(good, "\"cp\":2", "\"cp\":99999999999")), HasSubstr("dims.cp: 99999999999 is too large"));
  EXPECT_THAT(read(replaced(good, "[3,5,0,8,0,1,0]", "[3,5,0,8,0,1]")),
              HasSubstr("micro_batches[0][0].documents[0]: must be a list of 7 entries, not 6"));
  EXPECT_THAT(read(replaced(good, "[3,5,0,8,0,1,0]", "[3,5,0,\"8\",0,1,0]")),
              HasSubstr("micro_batches[0][0].documents[0][3]: must be a whole number, not \"8\""));
  EXPECT_THAT(read(replaced(good, "[3,5,0,8,0,1,0]", "[3,5,0,18446744073709551615,0,1,0]")),
              HasSubstr("documents[0][3]"));
  EXPECT_THAT(read(replaced(good, "0F0 0B0", "0F0 0X0")), AllOf(HasSubstr("schedule: "), HasSubstr("0X0")));
  EXPECT_THAT(read(replaced(good, "[[[0,8]],[]]", "[[[0,8,9]],[]]")),
              HasSubstr("shard_plans[0][0].ranges[0][0]: must be a list of 2"));
}

TEST_F(PlanFile, IsReadLineByLineAndBlankLinesAreSkipped) {
  const PackedStep first{.step = 0, .micro_batches = {{{{.id = 1, .length = 4}}}}};
  const PackedStep second{.step = 1, .micro_batches = {{{{.id = 2, .arrival = 1, .length = 6}}}}};
  write_file_atomically(path_, to_json(first) + "\n\n" + to_json(second) + "\n");
  EXPECT_EQ(read_packed_steps(path_), (std::vector<PackedStep>{first, second}));
}

TEST_F(PlanFile, IsRefusedWhereALineIsBrokenOrAPlanIsNot) {
  const std::string good = to_json(small_plan());
  write_file_atomically(path_, good + "\n{\n");
  EXPECT_THAT(refusal([&] { read_step_plans(path_); }),
              AllOf(HasSubstr(path_.string() + " line 2: "), HasSubstr("is not JSON")));
  write_file_atomically(path_, replaced(good, "[[[0,8]],[]]", "[[[0,7]],[]]"));
  EXPECT_THAT(refusal([&] { read_step_plans(path_); }),
              AllOf(HasSubstr("line 1: "), HasSubstr("token 7 is on no rank")));
  write_file_atomically(path_, "\n");
  EXPECT_THAT(refusal([&] { read_packed_steps(path_); }), HasSubstr("holds no packed step"));
}

}  // namespace
}  // namespace ballast
