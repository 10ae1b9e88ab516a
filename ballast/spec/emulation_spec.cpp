#include "ballast/spec/emulation_spec.h"

#include <cmath>

#include "ballast/spec/model_spec.h"

namespace ballast {

Violations EmulationSpec::violations() const {
  Violations found;
  const auto over_zero = [&](const char* key, double value) {
    if (!(std::isfinite(value) && value > 0)) found.push_back(std::string(key) + ": must be over 0");
  };
  if (!model_preset(model)) {
    const std::string near = nearest_name(model, model_preset_names());
    found.push_back("model = \"" + model + "\": must be one of " + join(model_preset_names()) +
                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  if (token_scale < 1) found.push_back("token_scale: must be 1 or more");
  over_zero("dilation", dilation);
  if (nodes < 1) found.push_back("nodes: must be 1 or more");
  if (ranks_per_node < 1) found.push_back("ranks_per_node: must be 1 or more");
  if (cards_per_node < 1) {
    found.push_back("cards_per_node = " + std::to_string(cards_per_node) + ": a node needs a network card");
  } else if (ranks_per_node % cards_per_node != 0) {
    found.push_back("cards_per_node = " + std::to_string(cards_per_node) + ": must divide ranks_per_node, " +
                    std::to_string(ranks_per_node));
  }
  over_zero("card_bits_per_second", card_bits_per_second);
  if (!card_rates.empty() && static_cast<int>(card_rates.size()) != cards_per_node) {
    found.push_back("card_rates: " + std::to_string(card_rates.size()) + " rates for " +
                    std::to_string(cards_per_node) +
                    " cards of a node; leave the key out where all cards have card_bits_per_second");
  }
  for (const double rate : card_rates) over_zero("card_rates", rate);
  over_zero("card_efficiency", card_efficiency);
  if (card_efficiency > 1) found.push_back("card_efficiency: must be 1 or less");
  over_zero("node_bytes_per_second", node_bytes_per_second);
  if (!(std::isfinite(card_latency) && card_latency >= 0)) found.push_back("card_latency_seconds: must be 0 or more");
  if (!(std::isfinite(node_latency) && node_latency >= 0)) found.push_back("node_latency_seconds: must be 0 or more");
  return found;
}

}  // namespace ballast
