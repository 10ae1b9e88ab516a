#include "ballast/io/emulation_toml.h"

#include "ballast/io/atomic_file.h"
#include "ballast/io/toml_table.h"

namespace ballast {

EmulationSpec emulation_from_toml(std::string_view text, std::string_view where) {
  const toml::table table = parse_toml(text, where);
  const TableReader reader(table, std::string(where),
                           {"name", "device", "model", "token_scale", "dilation", "nodes", "ranks_per_node",
                            "cards_per_node", "card_bits_per_second", "card_rates", "card_efficiency",
                            "card_latency_seconds", "node_bytes_per_second", "node_latency_seconds"});
  const auto count = [&](const char* key) {
    return static_cast<int>(std::clamp<std::int64_t>(reader.whole(key), -1, 1 << 20));
  };
  const std::vector<double> rates = reader.numbers("card_rates");
  if (rates.empty() && table.contains("card_rates")) {
    throw UserError(
        fmt::format("{}: card_rates: 0 rates for {} cards of a node; leave the key out where all cards have "
                    "card_bits_per_second",
                    where, count("cards_per_node")));
  }
  return {.name = reader.text("name"),
          .device = reader.text("device"),
          .model = reader.text("model"),
          .token_scale = reader.whole("token_scale"),
          .dilation = reader.number("dilation"),
          .nodes = count("nodes"),
          .ranks_per_node = count("ranks_per_node"),
          .cards_per_node = count("cards_per_node"),
          .card_bits_per_second = reader.number("card_bits_per_second"),
          .card_rates = rates,
          .card_efficiency = reader.number_or("card_efficiency", 1),
          .card_latency = reader.number("card_latency_seconds"),
          .node_bytes_per_second = reader.number("node_bytes_per_second"),
          .node_latency = reader.number("node_latency_seconds")};
}

EmulationSpec read_emulation(const std::filesystem::path& path) {
  EmulationSpec emulation = emulation_from_toml(read_file(path), path.string());
  require_valid(emulation.violations(), path.string());
  emulation.device = (path.parent_path() / emulation.device).lexically_normal().string();
  return emulation;
}

}  // namespace ballast
