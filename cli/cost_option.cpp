#include "cli/cost_option.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "ballast/base/error.h"
#include "ballast/cost/cluster_cost.h"
#include "ballast/io/cluster_toml.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/emulation_toml.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_toml.h"
#include "cli/emulated_run.h"

namespace ballast::cli {

namespace {

constexpr const char* kDefaultCost = "24576,1";

std::unique_ptr<CostModel> synthetic(const std::string& text) {
  double values[2] = {0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  for (int i = 0; i < 2 && good; ++i) {
    const auto [stop, error] = std::from_chars(at, end, values[i]);
    good = error == std::errc() && (i == 1 ? stop == end : stop < end && *stop == ',');
    at = stop + (i == 0 ? 1 : 0);
  }
  if (!good) {
    throw UserError("--cost = " + text +
                    ": must be two numbers A,B: a document of L tokens costs A L + B L^2, such as 24576,1");
  }
  return make_synthetic_cost(values[0], values[1]);
}

bool is_run_toml(const std::string& name) { return name.size() > 5 && name.substr(name.size() - 5) == ".toml"; }

ModelSpec read_model(const std::string& name) {
  if (is_run_toml(name)) return read_run_toml(name).model;
  const std::optional<ModelSpec> model = model_preset(name);
  if (model) return *model;
  const std::string near = nearest_name(name, model_preset_names());
  throw UserError("--model = " + name + ": must be a RUN.toml or one of " + join(model_preset_names()) +
                  (near.empty() ? "" : "; did you mean " + near + "?"));
}

std::unique_ptr<CostModel> measured(const CostOptions& options) {
  if (options.model.empty()) throw UserError("--profile needs --model: the model whose parts it prices");
  ModelSpec model = read_model(options.model);
  HardwareProfile profile = read_hardware_profile(options.profile);
  // A run may leave the vocabulary to its corpus; then it is the profile's.
  constexpr std::string_view kVocabulary = ", vocab ";
  const std::size_t at = profile.key.mapping.find(kVocabulary);
  if (is_run_toml(options.model) && model.vocab_size == 0 && at != std::string::npos) {
    model.vocab_size = std::atoi(profile.key.mapping.c_str() + at + kVocabulary.size());
  }
  require_valid(model.violations(), options.model + ": [model]");
  // A mapping names the model and then the threads a rank: only the model is known here.
  const std::string shape = to_string(model);
  if (profile.key.mapping.rfind(shape, 0) != 0) {
    throw UserError(options.profile + ": mapping: profile has \"" + profile.key.mapping + "\", --model " +
                    options.model + " is \"" + shape + "\": measure that model with `ballast profile`");
  }
  return make_profile_cost(std::move(profile), model);
}

// On a published device: no run is stated, so that the ranks of one group have its nodes to themselves.
std::unique_ptr<CostModel> on_cluster(const CostOptions& options, int cp) {
  if (options.model.empty()) throw UserError("--cluster needs --model: the model whose parts it prices");
  ModelSpec model = read_model(options.model);
  if (model.vocab_size == 0) model.vocab_size = 32000;  // no part of a layer
  require_valid(model.violations(), options.model + ": [model]");
  if (options.tp < 1 || model.num_heads % options.tp != 0 || model.ffn_dim % options.tp != 0) {
    throw UserError("--tp = " + std::to_string(options.tp) + ": must divide num_heads = " +
                    std::to_string(model.num_heads) + " and ffn_dim = " + std::to_string(model.ffn_dim));
  }
  const ClusterSpec cluster = read_cluster(options.cluster);
  return make_cluster_cost(read_device_profile(cluster.device), cluster, model,
                           {.dims = {.dp = 1, .pp = 1, .cp = cp}, .tp = options.tp});
}

std::unique_ptr<CostModel> emulated(const CostOptions& options, int cp) {
  if (!is_run_toml(options.model)) {
    throw UserError("--emulate needs --model RUN.toml: the small model whose numbers travel between its ranks");
  }
  const EmulationSpec emulation = read_emulation(options.emulate);
  if (cp > emulation.num_ranks()) {
    throw UserError(options.emulate + ": nodes x ranks_per_node = " + std::to_string(emulation.num_ranks()) +
                    " ranks, " + std::to_string(cp) + " are asked for (--cp)");
  }
  return make_emulated_cost(emulation, read_run_toml(options.model));
}

}  // namespace

void add_cost_options(CLI::App& app, CostOptions& options) {
  app.add_option("--cost", options.cost,
                 "A document of L tokens costs A L + B L^2; 24576,1, a layer 4096 wide, where nothing is said")
      ->type_name("A,B");
  app.add_option("--profile", options.profile, "Measured cost: a file that `ballast profile` wrote; needs --model")
      ->type_name("FILE");
  app.add_option("--cluster", options.cluster, "Published cost: the device and links of a cluster; needs --model")
      ->type_name("FILE");
  app.add_option("--tp", options.tp, "With --cluster: GPUs of a tensor parallel group")->type_name("N");
  app.add_option("--emulate", options.emulate, "Cost of an emulated cluster; needs --model RUN.toml")
      ->type_name("FILE");
  app.add_option("--model", options.model, "Model of the profile: a RUN.toml, or one of " + join(model_preset_names()))
      ->type_name("NAME");
}

std::unique_ptr<CostModel> make_cost(const CostOptions& options, int cp) {
  const std::string* stated[] = {&options.cost, &options.profile, &options.cluster, &options.emulate};
  if (std::count_if(std::begin(stated), std::end(stated), [](const std::string* s) { return !s->empty(); }) > 1) {
    throw UserError("--cost, --profile, --cluster and --emulate exclude each other: name one");
  }
  if (!options.cluster.empty()) return on_cluster(options, cp);
  if (!options.emulate.empty()) return emulated(options, cp);
  if (!options.profile.empty()) {
    return measured(options);
  }
  if (!options.model.empty()) throw UserError("--model says which model a profile is of, but there is no --profile");
  return synthetic(options.cost.empty() ? kDefaultCost : options.cost);
}

}  // namespace ballast::cli
