#include "ballast/io/profile_json.h"

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

using nlohmann::ordered_json;

// A list with one entry a line, so that profiles diff well.
std::string lines(const ordered_json& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i > 0 ? ",\n    " : "\n    ") + list[i].dump();
  return text + "]";
}

}  // namespace

std::string to_json(const HardwareProfile& profile) {
  ordered_json attention = ordered_json::array();
  for (const AttentionPoint& p : profile.attention) {
    attention.push_back({{"queries", p.queries},
                         {"keys", p.keys},
                         {"causal", p.causal},
                         {"forward_seconds", p.forward},
                         {"backward_seconds", p.backward}});
  }
  ordered_json linear = ordered_json::array();
  for (const LinearPoint& p : profile.linear) {
    linear.push_back(
        {{"part", p.part}, {"tokens", p.tokens}, {"forward_seconds", p.forward}, {"backward_seconds", p.backward}});
  }
  ordered_json collectives = ordered_json::array();
  for (const CollectivePoint& p : profile.collectives) {
    collectives.push_back({{"operation", p.operation}, {"ranks", p.ranks}, {"bytes", p.bytes}, {"seconds", p.seconds}});
  }
  const ordered_json key{{"device", profile.key.device},
                         {"kernel_build", profile.key.kernel_build},
                         {"precision", profile.key.precision},
                         {"mapping", profile.key.mapping}};
  const auto number = [](double value) { return ordered_json(value).dump(); };
  return "{\"version\": " + std::to_string(HardwareProfile::kVersion) + ",\n  \"key\": " + key.dump() +
         ",\n  \"measured_by\": " + ordered_json(profile.measured_by).dump() +
         ",\n  \"taken_seconds\": " + number(profile.seconds_taken) +
         ",\n  \"optimizer_seconds_per_parameter\": " + number(profile.optimizer_seconds_per_parameter) +
         ",\n  \"attention_block_overhead_seconds\": " + number(profile.attention_block_overhead) +
         ",\n  \"attention\": " + lines(attention) + ",\n  \"linear\": " + lines(linear) +
         ",\n  \"collectives\": " + lines(collectives) + "}\n";
}

HardwareProfile hardware_profile_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json document = parse_json(text, where);
  const JsonReader reader(document, where);
  reader.expect_version(HardwareProfile::kVersion);
  reader.expect_keys({"version", "key", "measured_by", "taken_seconds", "optimizer_seconds_per_parameter",
                      "attention_block_overhead_seconds", "attention", "linear", "collectives"});
  HardwareProfile profile;
  const JsonReader key = reader["key"];
  key.expect_keys({"device", "kernel_build", "precision", "mapping"});
  profile.key = {.device = key["device"].text(),
                 .kernel_build = key["kernel_build"].text(),
                 .precision = key["precision"].text(),
                 .mapping = key["mapping"].text()};
  profile.measured_by = reader["measured_by"].text();
  profile.seconds_taken = reader["taken_seconds"].number();
  profile.optimizer_seconds_per_parameter = reader["optimizer_seconds_per_parameter"].number();
  profile.attention_block_overhead = reader["attention_block_overhead_seconds"].number();
  for (const JsonReader& point : reader["attention"].items()) {
    point.expect_keys({"queries", "keys", "causal", "forward_seconds", "backward_seconds"});
    profile.attention.push_back({.queries = point["queries"].tokens(),
                                 .keys = point["keys"].tokens(),
                                 .causal = point["causal"].boolean(),
                                 .forward = point["forward_seconds"].number(),
                                 .backward = point["backward_seconds"].number()});
  }
  for (const JsonReader& point : reader["linear"].items()) {
    point.expect_keys({"part", "tokens", "forward_seconds", "backward_seconds"});
    profile.linear.push_back({.part = point["part"].text(),
                              .tokens = point["tokens"].tokens(),
                              .forward = point["forward_seconds"].number(),
                              .backward = point["backward_seconds"].number()});
  }
  for (const JsonReader& point : reader["collectives"].items()) {
    point.expect_keys({"operation", "ranks", "bytes", "seconds"});
    profile.collectives.push_back({.operation = point["operation"].text(),
                                   .ranks = point["ranks"].small_integer(),
                                   .bytes = point["bytes"].integer(0, kLargestCount),
                                   .seconds = point["seconds"].number()});
  }
  return profile;
}

HardwareProfile read_hardware_profile(const std::filesystem::path& path) {
  HardwareProfile profile = hardware_profile_from_json(read_file(path), path.string());
  require_valid(profile.violations(), path.string());
  return profile;
}

}  // namespace ballast
