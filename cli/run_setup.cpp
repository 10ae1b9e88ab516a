#include "cli/run_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ballast/cost/emulated_cost.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/device_profile_json.h"
#include "ballast/io/emulation_toml.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/packing/oversize.h"
#include "ballast/packing/packer.h"
#include "ballast/planner/run_queues.h"
#include "ballast/runtime/checkpoint/checkpoint.h"
#include "ballast/runtime/profiler/profile_key.h"
#include "ballast/sharding/sharder.h"
#include "cli/emulated_run.h"

namespace ballast::cli {

namespace {

namespace fs = std::filesystem;

void require_known(const std::string& what, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string near = nearest_name(name, names);
  throw UserError(fmt::format("{} = \"{}\": must be one of {}{}", what, name, join(names),
                              near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

// Without a profile or a stated cost the model's own operation counts balance as well as they can: multiply-adds of a
// token in matrices, and of a query-key pair in attention. They predict no time.
std::unique_ptr<CostModel> operation_count_cost(const ModelSpec& model) {
  const double matrices = static_cast<double>(model.num_layers * model.layer_parameters()) +
                          static_cast<double>(model.embedding_parameters());
  const double pair = 2.0 * model.num_layers * model.num_heads * model.head_dim;
  return make_synthetic_cost(6.0 * matrices, 6.0 * pair / 2.0);
}

}  // namespace

void do_not_lease(LaunchSpec& launch) {
  launch.lease = "off";
  launch.pin = false;
}

RunSetup set_up_run(const RunRequest& request, int threads) {
  RunSetup setup;
  RunSpec& spec = setup.spec;
  spec = read_run_toml(request.run_toml, request.overrides);
  const std::string& where = request.run_toml;
  if (spec.corpus.empty()) {
    throw UserError(where + ": [corpus] path is missing: name a folder made by `ballast corpus build`");
  }
  if (spec.folder.empty()) throw UserError(where + ": [run] folder is missing: name the folder the run shall write");
  setup.corpus = std::make_shared<Corpus>(spec.corpus);
  const auto vocabulary = setup.corpus->summary().vocab_size;
  if (spec.model.vocab_size == 0) spec.model.vocab_size = static_cast<int>(vocabulary);
  require_valid(spec.violations(), where);
  for (const auto& [key, simulated] : {std::pair{"tp", spec.tensor_parallel != 1},
                                       {"zero", spec.zero != 0},
                                       {"recompute", spec.recompute != "none"}}) {
    if (simulated) {
      throw UserError(
          fmt::format("{}: [parallel] {}: `ballast train` runs tp = 1, zero = 0 and recompute = \"none\" as "
                      "yet; `ballast simulate` runs the others",
                      where, key));
    }
  }
  require_known(where + ": [packing] packer", spec.packing.packer, packer_names());
  require_known(where + ": [sharding] strategy", spec.sharding, sharding_names());
  if (spec.model.vocab_size < vocabulary) {
    throw UserError(
        fmt::format("{}: [model] vocab_size = {} is less than the corpus's {}: some tokens would lie outside", where,
                    spec.model.vocab_size, vocabulary));
  }

  if (spec.packing.oversize == Oversize::refuse && request.plan_file.empty()) {  // before anything runs
    for (std::int64_t id = 0; id < setup.corpus->num_documents(); ++id) {
      require_fits(spec.packing, {.id = id, .length = setup.corpus->length(id)});
    }
  }

  if (!request.emulation_file.empty()) {
    setup.emulation = read_emulation(request.emulation_file);
    require_ranks(*setup.emulation, request.emulation_file, spec);
    setup.cost = make_emulated_cost(*setup.emulation, spec);
    setup.cost_is_seconds = true;
    do_not_lease(spec.launch);
  } else if (!spec.profile.empty()) {
    HardwareProfile profile = read_hardware_profile(spec.profile);
    const std::vector<std::string> other =
        differences(profile.key, key_of_this_machine(spec.model, spec.training.precision, threads));
    if (!other.empty()) {
      throw UserError(
          fmt::format("{}: measured for something else: {}; measure this run's with `ballast profile --run "
                      "{} --out FILE`",
                      spec.profile, join(other, "; "), where));
    }
    setup.cost = make_profile_cost(std::move(profile), spec.model);
    setup.cost_is_seconds = true;
  } else if (spec.synthetic_cost) {
    setup.cost = make_synthetic_cost((*spec.synthetic_cost)[0], (*spec.synthetic_cost)[1]);
  } else {
    setup.cost = operation_count_cost(spec.model);
  }
  if (spec.packing.tune_queues) tune_run_queues(spec, *setup.cost, documents_of_run(spec, *setup.corpus));
  return setup;
}

DocumentStream documents_of_run(const RunSpec& spec, const Corpus& corpus) {
  return {corpus.lengths(),
          corpus.domains(),
          {.shuffle = spec.shuffle, .seed = spec.seed, .num_epochs = spec.epochs, .num_documents = spec.documents}};
}

void check_run_folder(const RunSpec& spec, bool resume) {
  const fs::path folder = spec.folder;
  if (resume) {
    if (!fs::is_directory(folder)) throw UserError(spec.folder + ": --resume: there is no such run folder");
    if (newest_checkpoint(folder / "checkpoints").empty()) {
      throw UserError(spec.folder + ": --resume: it holds no complete checkpoint");
    }
    return;
  }
  if (fs::exists(folder) && !fs::is_directory(folder)) throw UserError(spec.folder + ": [run] folder is a file");
  const fs::path metrics = folder / "metrics.jsonl";
  if ((fs::exists(metrics) && fs::file_size(metrics) > 0) || !newest_checkpoint(folder / "checkpoints").empty()) {
    throw UserError(spec.folder +
                    ": this run folder already has steps; go on with --resume, or name another [run] folder");
  }
}

std::string corpus_identity(const Corpus& corpus) {
  return fmt::format("{} documents, {} tokens", corpus.summary().documents, corpus.summary().tokens);
}

}  // namespace ballast::cli
