#include "cli/cost_option.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "ballast/base/error.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_toml.h"

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

}  // namespace

void add_cost_options(CLI::App& app, CostOptions& options) {
  app.add_option("--cost", options.cost,
                 "A document of L tokens costs A L + B L^2; 24576,1, a layer 4096 wide, where nothing is said")
      ->type_name("A,B");
  app.add_option("--profile", options.profile, "Measured cost: a file that `ballast profile` wrote; needs --model")
      ->type_name("FILE");
  app.add_option("--model", options.model, "Model of the profile: a RUN.toml, or one of " + join(model_preset_names()))
      ->type_name("NAME");
}

std::unique_ptr<CostModel> make_cost(const CostOptions& options) {
  if (!options.profile.empty()) {
    if (!options.cost.empty()) throw UserError("--cost and --profile exclude each other: name one");
    return measured(options);
  }
  if (!options.model.empty()) throw UserError("--model says which model a profile is of, but there is no --profile");
  return synthetic(options.cost.empty() ? kDefaultCost : options.cost);
}

}  // namespace ballast::cli
