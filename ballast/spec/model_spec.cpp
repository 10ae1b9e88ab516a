#include "ballast/spec/model_spec.h"

#include <map>

namespace ballast {

std::int64_t ModelSpec::layer_parameters() const {
  const std::int64_t hidden = hidden_dim;
  const std::int64_t attention = hidden * head_dim * (2L * num_heads + 2L * num_kv_heads);
  const std::int64_t mlp = 3L * hidden * ffn_dim;
  return attention + mlp + 2 * hidden;
}

std::int64_t ModelSpec::embedding_parameters() const { return static_cast<std::int64_t>(vocab_size) * hidden_dim; }

std::int64_t ModelSpec::head_parameters() const { return hidden_dim + (tied_head ? 0 : embedding_parameters()); }

std::int64_t ModelSpec::num_parameters() const {
  return num_layers * layer_parameters() + embedding_parameters() + head_parameters();
}

Violations ModelSpec::violations() const {
  Violations found;
  const auto positive = [&](const char* name, int value) {
    if (value < 1) found.push_back(std::string(name) + " = " + std::to_string(value) + ": must be 1 or more");
  };
  positive("num_layers", num_layers);
  positive("hidden_dim", hidden_dim);
  positive("num_heads", num_heads);
  positive("num_kv_heads", num_kv_heads);
  positive("head_dim", head_dim);
  positive("ffn_dim", ffn_dim);
  positive("vocab_size", vocab_size);
  if (!found.empty()) return found;
  if (num_heads % num_kv_heads != 0) {
    found.push_back("num_heads = " + std::to_string(num_heads) + " is not a multiple of num_kv_heads = " +
                    std::to_string(num_kv_heads) + ": every group of query heads shares one key head");
  }
  if (head_dim % 2 != 0) {
    found.push_back("head_dim = " + std::to_string(head_dim) + ": rotary positions turn pairs, so it must be even");
  }
  if (!(rope_theta > 0)) found.push_back("rope_theta: must be over 0");
  if (!(norm_eps > 0)) found.push_back("norm_eps: must be over 0");
  return found;
}

std::string to_string(const ModelSpec& m) {
  return "layers " + std::to_string(m.num_layers) + ", hidden " + std::to_string(m.hidden_dim) + ", heads " +
         std::to_string(m.num_heads) + "/" + std::to_string(m.num_kv_heads) + " x " + std::to_string(m.head_dim) +
         ", ffn " + std::to_string(m.ffn_dim) + ", vocab " + std::to_string(m.vocab_size) +
         (m.tied_head ? ", tied" : "");
}

namespace {

// "tiny" is the quickstart's. The LLaMA shapes are those of the published models (LLaMA 1 and 2
// papers, OpenLLaMA 3B, The Llama 3 Herd of Models, table 3).
const std::map<std::string, ModelSpec>& presets() {
  static const std::map<std::string, ModelSpec> table = {
      {"tiny", ModelSpec{}},
      {"llama-3b", {26, 3200, 32, 32, 100, 8640, 32000, 10000.0, 1e-6, false}},
      {"llama-7b", {32, 4096, 32, 32, 128, 11008, 32000, 10000.0, 1e-5, false}},
      {"llama-13b", {40, 5120, 40, 40, 128, 13824, 32000, 10000.0, 1e-5, false}},
      {"llama-30b", {60, 6656, 52, 52, 128, 17920, 32000, 10000.0, 1e-6, false}},
      {"llama-70b", {80, 8192, 64, 8, 128, 28672, 32000, 10000.0, 1e-5, false}},
      {"llama3-8b", {32, 4096, 32, 8, 128, 14336, 128256, 500000.0, 1e-5, false}},
      {"llama3-70b", {80, 8192, 64, 8, 128, 28672, 128256, 500000.0, 1e-5, false}},
      {"llama3-405b", {126, 16384, 128, 8, 128, 53248, 128256, 500000.0, 1e-5, false}},
  };
  return table;
}

}  // namespace

std::optional<ModelSpec> model_preset(const std::string& name) {
  const auto found = presets().find(name);
  if (found == presets().end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, spec] : presets()) names.push_back(name);
  return names;
}

}  // namespace ballast
