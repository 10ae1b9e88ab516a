// The shape of a LLaMA-like decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied or untied head.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct ModelSpec {
  int num_layers = 2;
  int hidden_dim = 256;
  int num_heads = 4;
  int num_kv_heads = 4;  // grouped-query attention where smaller than num_heads
  int head_dim = 64;
  int ffn_dim = 768;  // width of the gate and of the up projection
  int vocab_size = 256;
  double rope_theta = 10000.0;
  double norm_eps = 1e-5;
  bool tied_head = false;

  // Learned numbers: of one layer, of the embedding, of the head (0 where tied), of all.
  std::int64_t layer_parameters() const;
  std::int64_t embedding_parameters() const;
  std::int64_t head_parameters() const;  // final norm included
  std::int64_t num_parameters() const;

  Violations violations() const;
  bool operator==(const ModelSpec&) const = default;
};

// "layers 2, hidden 256, heads 4/4 x 64, ffn 768, vocab 256": part of the key of a hardware profile.
std::string to_string(const ModelSpec& model);

// Named shapes users can start from ("tiny", "llama-3b", ...). Empty where the name is unknown.
std::optional<ModelSpec> model_preset(const std::string& name);
std::vector<std::string> model_preset_names();

}  // namespace ballast
