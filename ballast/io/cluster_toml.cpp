#include "ballast/io/cluster_toml.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"

namespace ballast {

namespace {

// One table, whose keys are all known beforehand.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, const std::vector<std::string>& keys)
      : table_(table), where_(std::move(where)) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
      const std::string near = nearest_name(name, keys);
      throw UserError(fmt::format("{}: key \"{}\" is unknown; {}", where_, name,
                                  near.empty() ? "valid: " + join(keys) : "did you mean \"" + near + "\"?"));
    }
  }

  std::string text(const char* key) const {
    const auto value = node(key).value<std::string>();
    if (!value) refuse(key, "a string");
    return *value;
  }
  double number(const char* key) const {
    if (!node(key).is_number()) refuse(key, "a number");
    return *node(key).value<double>();
  }
  double number_or(const char* key, double otherwise) const {
    return table_.get(key) == nullptr ? otherwise : number(key);
  }
  // Empty where the key is not there.
  std::vector<std::vector<double>> pairs(const char* key) const {
    std::vector<std::vector<double>> found;
    if (table_.get(key) == nullptr) return found;
    const toml::array* list = node(key).as_array();
    if (list == nullptr) refuse(key, "a list of [bytes, share]");
    for (const toml::node& item : *list) {
      const toml::array* pair = item.as_array();
      if (pair == nullptr) refuse(key, "a list of [bytes, share]");
      std::vector<double>& values = found.emplace_back();
      for (const toml::node& value : *pair) {
        if (!value.is_number()) refuse(key, "a list of [bytes, share]");
        values.push_back(*value.value<double>());
      }
    }
    return found;
  }
  std::int64_t whole(const char* key) const {
    if (!node(key).is_integer()) refuse(key, "a whole number");
    return *node(key).value<std::int64_t>();
  }

 private:
  const toml::node& node(const char* key) const {
    const toml::node* found = table_.get(key);
    if (found == nullptr) throw UserError(fmt::format("{}: {} is missing", where_, key));
    return *found;
  }
  [[noreturn]] void refuse(const char* key, const char* allowed) const {
    throw UserError(fmt::format("{}: {}: must be {}", where_, key, allowed));
  }

  const toml::table& table_;
  std::string where_;
};

}  // namespace

ClusterSpec cluster_from_toml(std::string_view text, std::string_view where) {
  toml::table table;
  try {
    table = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
  const TableReader reader(table, std::string(where), {"name", "device", "memory_bytes", "tier"});
  ClusterSpec cluster{.name = reader.text("name"),
                      .device = reader.text("device"),
                      .tiers = {},
                      .memory_bytes = reader.whole("memory_bytes")};
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
