#include "cli/placement_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"
#include "cli/step_placement.h"

namespace ballast::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "placement.json";
constexpr std::array kParts{"local", "intra_node", "inter_node", "wait", "move", "linear"};
constexpr std::array kQueues{"local", "intra_node", "inter_node"};

// The page draws what it is given, so all that it asks for must be there.
void check_zones(const JsonReader& zones) {
  zones["cost"].text();
  zones["longest_tokens"].tokens();
  zones["ranks_per_node"].small_integer();
  for (const char* key : {"intra_node_from_tokens", "inter_node_from_tokens"}) {
    if (!zones[key].value().is_null()) zones[key].tokens();
  }
  for (const JsonReader& point : zones["points"].items()) {
    point["length_tokens"].tokens();
    for (const char* key : {"attention_seconds", "linear_seconds", "intra_node_seconds", "inter_node_seconds"}) {
      point[key].number();
    }
  }
}

void check_part(const JsonReader& part) {
  part.expect_size(3);
  const std::vector<JsonReader> entries = part.items();
  const std::string name = entries[0].text();
  if (std::find(kParts.begin(), kParts.end(), name) == kParts.end()) {
    entries[0].fail("\"" + name + "\": must be one of local, intra_node, inter_node, wait, move, linear");
  }
  entries[1].number();
  entries[2].number();
}

void check_placement(const JsonReader& placement) {
  placement["sharding"].text();
  for (const char* key : {"tokens", "documents", "moved_tokens"}) placement[key].tokens();
  for (const char* key : {"slowest_seconds", "even_share_seconds", "over_even_share"}) placement[key].number();
  for (const char* key : {"inside_nodes", "across_nodes"}) placement["bytes"][key].integer(0);
  for (const char* queue : kQueues) placement["queues"][queue].tokens();
  if (placement["ranks"].items().empty()) placement["ranks"].fail("must hold a rank or more");
  for (const JsonReader& rank : placement["ranks"].items()) {
    for (const char* key : {"rank", "node"}) rank[key].small_integer();
    for (const char* key : {"tokens", "linear_tokens"}) rank[key].tokens();
    for (const char* queue : kQueues) rank["queue_tokens"][queue].tokens();
    for (const JsonReader& part : rank["forward"].items()) check_part(part);
  }
}

}  // namespace

PlacementFile::PlacementFile(fs::path folder, const CostModel* cost, std::int64_t first_step)
    : path_(std::move(folder) / kName), cost_(cost) {
  if (first_step > 0) {
    if (fs::exists(path_)) cost_ = nullptr;
  } else {
    std::error_code ignored;  // there is none to remove
    fs::remove(path_, ignored);
  }
}

void PlacementFile::add(const StepPlan& plan) {
  if (cost_ == nullptr) return;
  const auto value = step_placement_json(plan, cost_);
  if (!value) return;
  write_file_atomically(path_, value->dump() + "\n");
  cost_ = nullptr;
}

std::optional<nlohmann::ordered_json> read_placement_file(const fs::path& folder) {
  const fs::path path = folder / kName;
  if (!fs::exists(path)) return std::nullopt;
  const std::string where = path.string();
  const nlohmann::json value = parse_json(read_file(path), where);
  const JsonReader reader(value, where);
  for (const char* key : {"step", "dp_rank", "micro_batch", "micro_batches"}) reader[key].tokens();
  check_zones(reader["zones"]);
  check_placement(reader["placement"]);
  return nlohmann::ordered_json(value);
}

}  // namespace ballast::cli
