// Where the documents of a micro-batch go and why, as data for a page and for --json: zones by length, every rank's
// three queues in time, what each sharder would have taken.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"
#include "ballast/sharding/sharder.h"

namespace ballast::cli {

// {intra_node_from_tokens, inter_node_from_tokens (null: from none up to `longest`), points [{length_tokens,
// attention_seconds, linear_seconds, intra_node_seconds, inter_node_seconds}], cost}
nlohmann::ordered_json zones_json(const CostModel& cost, Tokens longest);

// {sharding, tokens, documents, ranks_per_node, slowest_seconds, lower_bound_seconds, lower_bound_gap, bytes {inside,
// across}, moved_tokens, queues {local, intra_node, inter_node: documents}, ranks [{rank, node, tokens, linear_tokens,
// forward [[queue, begin, end]]}]} of one layer. `queue`: local, intra_node, inter_node, wait, move.
nlohmann::ordered_json placement_json(const ShardPlan& plan, const CostModel& cost);

// {name: {seconds, over_lower_bound}} of every sharder; for plans of one micro-batch.
nlohmann::ordered_json trials_json(const std::vector<SharderTrial>& trials, Seconds lower_bound);

// One line: which sharder, against which others, and how far above the bound.
std::string why_chosen(const std::vector<SharderTrial>& trials, Seconds lower_bound);

}  // namespace ballast::cli
