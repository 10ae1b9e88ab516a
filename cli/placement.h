// Where the documents of a micro-batch go and why, as data for a page and for --json: zones by length, every rank's
// three queues in time, what each sharder would have taken.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/shard_plan.h"
#include "ballast/sharding/sharder.h"

namespace ballast::cli {

// {longest_tokens, intra_node_from_tokens, inter_node_from_tokens (null: from none up to the longest), ranks_per_node,
// points [{length_tokens, attention_seconds, linear_seconds, intra_node_seconds, inter_node_seconds}], cost}
nlohmann::ordered_json zones_json(const CostModel& cost, Tokens longest);

// What a plan says without a cost: {sharding, tokens, documents, ranks_per_node, moved_tokens, queues {local,
// intra_node, inter_node: documents}, ranks [{rank, node, tokens, linear_tokens, queue_tokens {local, intra_node,
// inter_node}}]}. Of a plan that gathers keys no document is in a queue, and ranks have no queue_tokens.
nlohmann::ordered_json untimed_placement_json(const ShardPlan& plan);

// The same, and of one layer: slowest_seconds, even_share_seconds, over_even_share (a ratio), bytes {inside_nodes,
// across_nodes}, and by rank forward [[part, begin, end]], empty of a plan that gathers keys. `part`: local,
// intra_node, inter_node, wait, move, linear.
nlohmann::ordered_json placement_json(const ShardPlan& plan, const CostModel& cost);

// {name with underscores: {seconds, over_even_share}} of every sharder; for plans of one micro-batch.
nlohmann::ordered_json trials_json(const std::vector<SharderTrial>& trials, Seconds even_share);

// One line: which sharder, against which others, and how far from an even share.
std::string why_chosen(const std::vector<SharderTrial>& trials, Seconds even_share);

}  // namespace ballast::cli
