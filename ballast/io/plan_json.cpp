#include "ballast/io/plan_json.h"

#include <limits>

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

using nlohmann::json;

constexpr int kPackedStepVersion = 1;
constexpr int kPackerStateVersion = 1;

json write(const Document& d) {
  return json::array({d.id, d.arrival, d.begin, d.length, d.domain, d.ends ? 1 : 0, d.due_step});
}

Document read_document(const JsonReader& reader) {
  reader.expect_size(7);
  const std::vector<JsonReader> items = reader.items();
  return {.id = items[0].integer(0),
          .arrival = items[1].integer(0),
          .begin = items[2].tokens(),
          .length = items[3].tokens(),
          .domain = items[4].small_integer(),
          .ends = items[5].integer(0, 1) == 1,
          .due_step = items[6].integer()};
}

json write(const std::vector<Document>& documents) {
  json list = json::array();
  for (const Document& document : documents) list.push_back(write(document));
  return list;
}

std::vector<Document> read_documents(const JsonReader& reader) {
  std::vector<Document> documents;
  for (const JsonReader& item : reader.items()) documents.push_back(read_document(item));
  return documents;
}

json write(const MicroBatch& micro_batch) { return {{"documents", write(micro_batch.documents)}}; }

MicroBatch read_micro_batch(const JsonReader& reader) {
  reader.expect_keys({"documents"});
  return {.documents = read_documents(reader["documents"])};
}

json write_ranges(const ShardPlan& plan) {
  json ranks = json::array();
  for (const auto& ranges : plan.ranges) {
    json list = json::array();
    for (const TokenRange& range : ranges) list.push_back(json::array({range.begin, range.end}));
    ranks.push_back(std::move(list));
  }
  return ranks;
}

// The layout of a micro-batch, without its boundaries. Rings and moves are there where the plan has them.
json write_layout(const ShardPlan& plan) {
  json layout{{"sharding", plan.sharding}, {"ranges", write_ranges(plan)}};
  if (plan.attends_in_rings()) {
    json rings = json::array();
    for (const Ring& ring : plan.rings) rings.push_back({{"ranks", ring.ranks}, {"documents", ring.documents}});
    layout["rings"] = std::move(rings);
    layout["ranks_per_node"] = plan.ranks_per_node;
  }
  if (!plan.moves.empty()) {
    json moves = json::array();
    for (const TokenMove& move : plan.moves) moves.push_back(json::array({move.from, move.to, move.tokens}));
    layout["moves"] = std::move(moves);
  }
  return layout;
}

json write(const PackedStep& step) {
  json micro_batches = json::array();
  for (const MicroBatch& micro_batch : step.micro_batches) micro_batches.push_back(write(micro_batch));
  return {{"version", kPackedStepVersion}, {"step", step.step}, {"micro_batches", std::move(micro_batches)}};
}

PackedStep read_packed_step(const JsonReader& reader) {
  reader.expect_version(kPackedStepVersion);
  reader.expect_keys({"version", "step", "micro_batches"});
  PackedStep step{.step = reader["step"].integer(0), .micro_batches = {}};
  for (const JsonReader& item : reader["micro_batches"].items()) step.micro_batches.push_back(read_micro_batch(item));
  return step;
}

// `cu_seqlens`: the boundaries where the text has none.
ShardPlan read_shard_plan(const JsonReader& reader, const std::vector<Tokens>* cu_seqlens) {
  reader.expect_keys({"sharding", "cu_seqlens", "ranges", "rings", "ranks_per_node", "moves"});
  ShardPlan plan;
  plan.sharding = reader["sharding"].text();
  if (cu_seqlens != nullptr && !reader.find("cu_seqlens")) {
    plan.cu_seqlens = *cu_seqlens;
  } else {
    plan.cu_seqlens = reader["cu_seqlens"].integers(0, kLargestCount);
  }
  for (const JsonReader& rank : reader["ranges"].items()) {
    std::vector<TokenRange>& ranges = plan.ranges.emplace_back();
    for (const JsonReader& range : rank.items()) {
      range.expect_size(2);
      const std::vector<std::int64_t> ends = range.integers(0, kLargestCount);
      ranges.push_back({ends[0], ends[1]});
    }
  }
  if (const auto rings = reader.find("rings")) {
    plan.exchange = KvExchange::rings;
    plan.ranks_per_node = reader["ranks_per_node"].small_integer();
    for (const JsonReader& item : rings->items()) {
      item.expect_keys({"ranks", "documents"});
      Ring& ring = plan.rings.emplace_back();
      for (const JsonReader& rank : item["ranks"].items()) ring.ranks.push_back(rank.small_integer());
      for (const std::int64_t document : item["documents"].integers(0, kLargestCount)) {
        ring.documents.push_back(static_cast<std::size_t>(document));
      }
    }
  }
  if (const auto moves = reader.find("moves")) {
    for (const JsonReader& item : moves->items()) {
      item.expect_size(3);
      const std::vector<JsonReader> values = item.items();
      plan.moves.push_back({values[0].small_integer(), values[1].small_integer(), values[2].tokens()});
    }
  }
  return plan;
}

// Calls read(text, where) for every line that is not blank.
template <class Read>
void for_each_line(const std::filesystem::path& path, const Read& read) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  for (int line_number = 1; !rest.empty(); ++line_number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    read(line, path.string() + " line " + std::to_string(line_number));
  }
}

}  // namespace

std::string to_json(const PackedStep& step) { return write(step).dump(); }

PackedStep packed_step_from_json(std::string_view text, std::string_view where) {
  const json document = parse_json(text, where);
  return read_packed_step(JsonReader(document, where));
}

std::string to_json(const ShardPlan& plan) {
  json layout = write_layout(plan);
  layout["cu_seqlens"] = plan.cu_seqlens;
  return layout.dump();
}

ShardPlan shard_plan_from_json(std::string_view text, std::string_view where) {
  const json document = parse_json(text, where);
  return read_shard_plan(JsonReader(document, where), nullptr);
}

std::string to_json(const StepPlan& plan) {
  json micro_batches = json::array();
  for (const auto& pipeline : plan.micro_batches) {
    json list = json::array();
    for (const MicroBatch& micro_batch : pipeline) list.push_back(write(micro_batch));
    micro_batches.push_back(std::move(list));
  }
  json shard_plans = json::array();
  for (std::size_t d = 0; d < plan.shard_plans.size(); ++d) {
    json list = json::array();
    for (std::size_t m = 0; m < plan.shard_plans[d].size(); ++m) {
      const ShardPlan& shard = plan.shard_plans[d][m];
      json entry = write_layout(shard);
      const bool follows = d < plan.micro_batches.size() && m < plan.micro_batches[d].size() &&
                           plan.micro_batches[d][m].cu_seqlens() == shard.cu_seqlens;
      if (!follows) entry["cu_seqlens"] = shard.cu_seqlens;
      list.push_back(std::move(entry));
    }
    shard_plans.push_back(std::move(list));
  }
  return json{{"version", StepPlan::kVersion},
              {"step", plan.step},
              {"dims", {{"dp", plan.dims.dp}, {"pp", plan.dims.pp}, {"cp", plan.dims.cp}}},
              {"stage_layers", plan.stage_layers},
              {"schedule", to_string(plan.schedule)},
              {"micro_batches", std::move(micro_batches)},
              {"shard_plans", std::move(shard_plans)}}
      .dump();
}

StepPlan step_plan_from_json(std::string_view text, std::string_view where) {
  const json document = parse_json(text, where);
  const JsonReader reader(document, where);
  reader.expect_version(StepPlan::kVersion);
  reader.expect_keys({"version", "step", "dims", "stage_layers", "schedule", "micro_batches", "shard_plans"});
  StepPlan plan;
  plan.step = reader["step"].integer(0);
  plan.dims = read_dims(reader["dims"]);
  for (const JsonReader& layers : reader["stage_layers"].items()) plan.stage_layers.push_back(layers.small_integer());
  const JsonReader schedule = reader["schedule"];
  const std::string schedule_text = schedule.text();
  try {
    plan.schedule = parse_schedule(schedule_text);
  } catch (const UserError& error) {
    schedule.fail(error.what());
  }
  for (const JsonReader& pipeline : reader["micro_batches"].items()) {
    std::vector<MicroBatch>& list = plan.micro_batches.emplace_back();
    for (const JsonReader& item : pipeline.items()) list.push_back(read_micro_batch(item));
  }
  for (const JsonReader& pipeline : reader["shard_plans"].items()) {
    const std::size_t d = plan.shard_plans.size();
    std::vector<ShardPlan>& list = plan.shard_plans.emplace_back();
    for (const JsonReader& item : pipeline.items()) {
      const std::size_t m = list.size();
      if (d < plan.micro_batches.size() && m < plan.micro_batches[d].size()) {
        const std::vector<Tokens> cu_seqlens = plan.micro_batches[d][m].cu_seqlens();
        list.push_back(read_shard_plan(item, &cu_seqlens));
      } else {
        list.push_back(read_shard_plan(item, nullptr));
      }
    }
  }
  return plan;
}

std::string to_json(const PackerState& state) {
  json queues = json::array();
  for (const auto& queue : state.queues) queues.push_back(write(queue));
  json ready = json::array();
  for (const PackedStep& step : state.ready) ready.push_back(write(step));
  const PackingCounts& counts = state.counts;
  return json{{"version", kPackerStateVersion},
              {"next_step", state.next_step},
              {"batches_taken", state.batches_taken},
              {"pending", write(state.pending)},
              {"queues", std::move(queues)},
              {"ready", std::move(ready)},
              {"intake", write(state.intake)},
              {"window_position", state.window_position},
              {"arrived_tokens", state.arrived_tokens},
              {"counts",
               {{"documents_in", counts.documents_in},
                {"documents_out", counts.documents_out},
                {"truncated", counts.truncated},
                {"truncated_tokens", counts.truncated_tokens},
                {"split", counts.split}}}}
      .dump();
}

PackerState packer_state_from_json(std::string_view text, std::string_view where) {
  const json document = parse_json(text, where);
  const JsonReader reader(document, where);
  reader.expect_version(kPackerStateVersion);
  reader.expect_keys({"version", "next_step", "batches_taken", "pending", "queues", "ready", "intake",
                      "window_position", "arrived_tokens", "counts"});
  PackerState state;
  state.next_step = reader["next_step"].integer();
  state.batches_taken = reader["batches_taken"].integer();
  state.pending = read_documents(reader["pending"]);
  for (const JsonReader& queue : reader["queues"].items()) state.queues.push_back(read_documents(queue));
  for (const JsonReader& step : reader["ready"].items()) state.ready.push_back(read_packed_step(step));
  state.intake = read_documents(reader["intake"]);
  state.window_position = reader["window_position"].tokens();
  if (const auto arrived = reader.find("arrived_tokens")) state.arrived_tokens = arrived->integers(0, kLargestCount);
  const JsonReader counts = reader["counts"];
  counts.expect_keys({"documents_in", "documents_out", "truncated", "truncated_tokens", "split"});
  state.counts = {.documents_in = counts["documents_in"].integer(0),
                  .documents_out = counts["documents_out"].integer(0),
                  .truncated = counts["truncated"].integer(0),
                  .truncated_tokens = counts["truncated_tokens"].integer(0),
                  .split = counts["split"].integer(0)};
  return state;
}

std::vector<PackedStep> read_packed_steps(const std::filesystem::path& path) {
  std::vector<PackedStep> steps;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    steps.push_back(packed_step_from_json(line, where));
    require_valid(steps.back().violations(std::numeric_limits<Tokens>::max()), where);
  });
  if (steps.empty()) throw UserError(path.string() + ": holds no packed step");
  return steps;
}

std::vector<StepPlan> read_step_plans(const std::filesystem::path& path) {
  std::vector<StepPlan> plans;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    plans.push_back(step_plan_from_json(line, where));
    require_valid(plans.back().violations(), where);
  });
  if (plans.empty()) throw UserError(path.string() + ": holds no step plan");
  return plans;
}

}  // namespace ballast
