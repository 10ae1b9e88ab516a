#include "ballast/io/device_profile_json.h"

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"

namespace ballast {

DeviceProfile device_profile_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json document = parse_json(text, where);
  const JsonReader reader(document, where);
  reader.expect_version(DeviceProfile::kVersion);
  reader.expect_keys({"version", "device", "precision", "sources", "peak_flops_per_second", "memory_bytes_per_second",
                      "sustained_share", "kernel_seconds", "gemm", "attention", "attention_kernels", "collectives"});
  DeviceProfile profile;
  profile.device = reader["device"].text();
  profile.precision = reader["precision"].text();
  for (const auto& [part, source] : reader["sources"].value().items()) {
    profile.sources[part] = JsonReader(source, where, "sources." + part).text();
  }
  profile.peak_flops_per_second = reader["peak_flops_per_second"].number();
  profile.memory_bytes_per_second = reader["memory_bytes_per_second"].number();
  profile.sustained_share = reader["sustained_share"].number();
  profile.kernel_seconds = reader["kernel_seconds"].number();
  for (const JsonReader& item : reader["gemm"].items()) {
    item.expect_size(4);
    const std::vector<JsonReader> values = item.items();
    profile.gemm.push_back({values[0].integer(1, kLargestCount), values[1].integer(1, kLargestCount),
                            values[2].integer(1, kLargestCount), values[3].number()});
  }
  for (const JsonReader& item : reader["attention"].items()) {
    item.expect_keys({"queries", "keys", "causal", "forward_flops_per_second", "backward_flops_per_second"});
    profile.attention.push_back({.queries = item["queries"].tokens(),
                                 .keys = item["keys"].tokens(),
                                 .causal = item["causal"].boolean(),
                                 .forward_flops_per_second = item["forward_flops_per_second"].number(),
                                 .backward_flops_per_second = item["backward_flops_per_second"].number()});
  }
  if (const auto kernels = reader.find("attention_kernels")) {
    for (const JsonReader& item : kernels->items()) {
      item.expect_keys({"name", "head_dim", "forward_flops_per_second", "backward_flops_per_second"});
      profile.attention_kernels.push_back({item["name"].text(), item["head_dim"].small_integer(1),
                                           item["forward_flops_per_second"].number(),
                                           item["backward_flops_per_second"].number()});
    }
  }
  for (const JsonReader& item : reader["collectives"].items()) {
    item.expect_keys({"operation", "ranks", "bytes", "seconds"});
    profile.collectives.push_back({.operation = item["operation"].text(),
                                   .ranks = item["ranks"].small_integer(2),
                                   .bytes = item["bytes"].integer(0, kLargestCount),
                                   .seconds = item["seconds"].number()});
  }
  return profile;
}

DeviceProfile read_device_profile(const std::filesystem::path& path) {
  DeviceProfile profile = device_profile_from_json(read_file(path), path.string());
  require_valid(profile.violations(), path.string());
  return profile;
}

}  // namespace ballast
