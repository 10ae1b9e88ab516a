#include "ballast/io/cluster_toml.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/toml_table.h"

namespace ballast {

ClusterSpec cluster_from_toml(std::string_view text, std::string_view where) {
  const toml::table table = parse_toml(text, where);
  const TableReader reader(table, std::string(where), {"name", "device", "memory_bytes", "cards_per_node", "tier"});
  ClusterSpec cluster{.name = reader.text("name"),
                      .device = reader.text("device"),
                      .tiers = {},
                      .memory_bytes = reader.whole("memory_bytes")};
  if (table.get("cards_per_node") != nullptr) {
    const std::int64_t cards = reader.whole("cards_per_node");
    if (cards < 1) {
      throw UserError(fmt::format(
          "{}: cards_per_node = {}: a node needs a network card; leave the key out for one a GPU", where, cards));
    }
    cluster.cards_per_node = static_cast<int>(std::min<std::int64_t>(cards, 1 << 16));
  }
  const toml::array* tiers = table["tier"].as_array();
  if (tiers == nullptr) throw UserError(fmt::format("{}: [[tier]] is missing: name at least one", where));
  for (const toml::node& node : *tiers) {
    const std::string place = fmt::format("{}: tier {}", where, cluster.tiers.size() + 1);
    if (!node.is_table()) throw UserError(place + ": must be a table, [[tier]]");
    const TableReader tier(
        *node.as_table(), place,
        {"name", "gpus", "bytes_per_second", "latency_seconds", "other_tenants_share", "share_by_bytes"});
    cluster.tiers.push_back({.name = tier.text("name"),
                             .gpus = static_cast<int>(std::clamp<std::int64_t>(tier.whole("gpus"), -1, 1 << 24)),
                             .bytes_per_second = tier.number("bytes_per_second"),
                             .latency = tier.number("latency_seconds"),
                             .other_tenants_share = tier.number_or("other_tenants_share", 0),
                             .share_by_bytes = tier.pairs("share_by_bytes")});
  }
  return cluster;
}

ClusterSpec read_cluster(const std::filesystem::path& path) {
  ClusterSpec cluster = cluster_from_toml(read_file(path), path.string());
  require_valid(cluster.violations(), path.string());
  cluster.device = (path.parent_path() / cluster.device).lexically_normal().string();
  return cluster;
}

}  // namespace ballast
