// ballast train: one command for the launcher and for every rank. Without a launcher's variables it checks the input,
// starts the ranks and stays with them; with them it is one rank.
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/run_record_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/runtime/checkpoint/checkpoint.h"
#include "ballast/runtime/comm/router.h"
#include "ballast/runtime/launch/cores.h"
#include "ballast/runtime/launch/launcher.h"
#include "ballast/runtime/launch/rank_session.h"
#include "ballast/runtime/launch/stop_signal.h"
#include "ballast/runtime/profiler/profile_key.h"
#include "ballast/runtime/train/allocator.h"
#include "ballast/runtime/train/trainer.h"
#include "cli/emulated_pace.h"
#include "cli/plan_source.h"
#include "cli/run_setup.h"
#include "cli/run_summary.h"
#include "cli/run_writer.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  RunRequest request;
  int nproc = 0;  // 0: as many as the degrees multiply to
  bool json = false;
  bool quiet = false;
};

// Threads of a rank before any rank runs: what the cores of this host give each, as RankSession will share them out.
int threads_of_a_rank(const RunSpec& spec, int local_ranks) {
  return share_cores(allowed_cores(), 0, local_ranks, spec.launch).threads;
}

void require_ranks(const RunSpec& spec, int ranks, const std::string& stated_by) {
  if (spec.parallel.world_size() != ranks) {
    throw UserError(fmt::format("[parallel] {} multiply to {} ranks, but {} gives {}", to_string(spec.parallel),
                                spec.parallel.world_size(), stated_by, ranks));
  }
}

std::string layout_of(const RunSpec& spec) {
  return fmt::format("{}, virtual stages {}", to_string(spec.parallel), spec.schedule.virtual_stages);
}

CheckpointManifest manifest_of(const RunSetup& setup) {
  const RunSpec& spec = setup.spec;
  CheckpointManifest manifest;
  manifest.model = to_string(spec.model);
  manifest.precision = to_string(spec.training.precision);
  manifest.layout = layout_of(spec);
  manifest.corpus = corpus_identity(*setup.corpus);
  manifest.seed = spec.seed;
  return manifest;
}

// What must be equal between a checkpoint and the run that goes on from it; the layout may differ.
void require_same_run(const CheckpointManifest& saved, const CheckpointManifest& run, const fs::path& checkpoint) {
  const auto compare = [&](const char* what, const std::string& theirs, const std::string& ours) {
    if (theirs != ours) {
      throw UserError(
          fmt::format("{}: it is of another {}: \"{}\", this run has \"{}\"", checkpoint.string(), what, theirs, ours));
    }
  };
  compare("model", saved.model, run.model);
  compare("precision", saved.precision, run.precision);
  compare("corpus", saved.corpus, run.corpus);
  compare("seed", std::to_string(saved.seed), std::to_string(run.seed));
}

// Everything a checkpoint holds of this rank. Moments are stored parameter by parameter, so any layout can read them.
std::vector<NamedTensor> checkpoint_tensors(PipelineStages& model, AdamW& optimizer, at::Tensor& updates, bool all) {
  std::vector<NamedTensor> tensors;
  const auto slice = [](const at::Tensor& flat, const Parameter& parameter) {
    return flat.narrow(0, parameter.offset, parameter.value.numel()).view(parameter.value.sizes());
  };
  bool first = false;
  for (const Parameter& parameter : model.parameters().parameters()) {
    if (!parameter.owned && !all) continue;
    tensors.push_back({"model/" + parameter.name, parameter.value.detach()});
    tensors.push_back({"adam_m/" + parameter.name, slice(optimizer.state().first_moment, parameter)});
    tensors.push_back({"adam_v/" + parameter.name, slice(optimizer.state().second_moment, parameter)});
    first = first || (parameter.name == "embedding.weight" && parameter.owned);
  }
  if (first || all) tensors.push_back({"adam_updates", updates});  // by the owner of the embedding: the first stage
  return tensors;
}

// `saved`: of the checkpoint the run goes on from, empty at its start. A timeline is of one layout: under another
// the old one is put aside, not mixed.
void prepare_run_folder(const RunSetup& setup, const CheckpointManifest& saved) {
  const RunSpec& spec = setup.spec;
  const fs::path folder = spec.folder;
  std::error_code error;
  if (!saved.layout.empty() && saved.layout != layout_of(spec)) {
    fs::rename(folder / "timeline", folder / fmt::format("timeline-before-step-{:06d}", saved.step), error);
  }
  fs::create_directories(folder / "timeline", error);
  if (!error) fs::create_directories(folder / "checkpoints", error);
  if (error) throw UserError(fmt::format("{}: [run] folder cannot be made: {}", spec.folder, error.message()));
  write_file_atomically(folder / "run.toml", to_toml(spec));
  CorpusRecord corpus;
  corpus.path = spec.corpus;
  corpus.domains = setup.corpus->domain_names();
  corpus.documents = setup.corpus->summary().documents;
  corpus.tokens = setup.corpus->summary().tokens;
  write_file_atomically(folder / "corpus.json", to_json(corpus));
}

struct Started {
  std::int64_t first_step = 0;
  fs::path checkpoint;
  CheckpointManifest saved;
};

Started start_of(const RunSetup& setup, bool resume) {
  Started started;
  if (!resume) return started;
  started.checkpoint = newest_checkpoint(fs::path(setup.spec.folder) / "checkpoints");
  started.saved = read_checkpoint_manifest(started.checkpoint);
  require_same_run(started.saved, manifest_of(setup), started.checkpoint);
  started.first_step = started.saved.step;
  return started;
}

// Finishes the run folder once all ranks have closed their files; rank 0 only.
void finish_run(const RunSetup& setup, const RankSession& session, const TrainOutcome& outcome,
                const std::string& source_state, const std::string& command, const TrainOptions& options) {
  const fs::path folder = setup.spec.folder;
  if (session.share().leased) replay_run(folder);
  PackerState state;
  if (!source_state.empty()) state = packer_state_from_json(source_state, "source_state");
  RunSummary summary = summarise_run(folder, setup.spec, command, state, setup.corpus->domain_names());
  summary.device = key_of_this_machine(setup.spec.model, setup.spec.training.precision, session.share().threads).device;
  summary.cores = session.share().num_cores;
  write_file_atomically(folder / "summary.json", to_json(summary));
  if (options.json) {
    fmt::print("{}\n", to_json(summary));
  } else if (!options.quiet) {
    if (outcome.stopped) fmt::print("stopped after step {}, as asked; go on with --resume\n", outcome.next_step - 1);
    if (outcome.data_ended) fmt::print("the corpus ended after {} steps\n", outcome.next_step);
    fmt::print("{}{}", to_text(summary), prediction_by_kind(folder));
  }
}

// All that can be said of the input before ranks connect. `planned`: of a plan file.
struct Input {
  RunSetup setup;
  Started started;
  std::unique_ptr<StepSource> planned;
};

std::unique_ptr<Input> read_input(const RunRequest& request, int threads, int ranks, const std::string& stated_by) {
  auto input = std::make_unique<Input>(Input{.setup = set_up_run(request, threads), .started = {}, .planned = nullptr});
  const RunSpec& spec = input->setup.spec;
  require_ranks(spec, ranks, stated_by);
  check_run_folder(spec, request.resume);
  input->started = start_of(input->setup, request.resume);
  const Started& started = input->started;
  if (started.first_step >= spec.training.steps) {
    throw UserError(fmt::format("{}: [training] steps = {}: the checkpoint {} has done them already", spec.folder,
                                spec.training.steps, started.checkpoint.string()));
  }
  if (!request.plan_file.empty()) {
    input->planned = plans_from_file(input->setup, request.plan_file, started.first_step);
  }
  return input;
}

void run_rank(RankSession& session, const TrainOptions& options, const std::string& command) {
  const int rank = session.identity().rank;
  std::unique_ptr<Input> input;
  session.check_together([&] {
    input = read_input(options.request, session.share().threads, session.identity().world_size, "the launcher");
  });
  const RunSetup& setup = input->setup;
  const Started& started = input->started;
  const RunSpec& spec = setup.spec;
  std::optional<EmulatedPace> pace;
  if (setup.emulation) pace.emplace(*setup.cost, session);
  RankHooks& hooks = pace ? static_cast<RankHooks&>(*pace) : session;
  SpanRecorder recorder(rank, session.epoch(), hooks);
  Mesh mesh = make_mesh(spec.parallel, rank, session.store(),
                        {.address = session.gloo_address(),
                         .timeout = spec.launch.timeout_seconds,
                         .observer = &recorder,
                         .io_core = session.share().io_core,
                         .routing = setup.emulation ? routing_of(setup.cost->cp_links()) : Routing{}});
  mesh.world->barrier();  // every rank has checked the folder before rank 0 writes to it
  if (rank == 0) prepare_run_folder(setup, started.saved);
  mesh.world->barrier();
  session.settle();

  PipelineStages model(spec.model, spec.layers_by_stage(), mesh.at.pp, spec.parallel.pp, spec.training.precision,
                       spec.seed);
  AdamW optimizer(model.parameters(), spec.training);
  at::Tensor updates = at::zeros({1}, at::kLong);
  if (!started.checkpoint.empty()) {
    load_checkpoint(started.checkpoint, started.saved, checkpoint_tensors(model, optimizer, updates, true));
    optimizer.state().updates = updates.item<std::int64_t>();
  }
  if (rank == 0 && !options.json && !options.quiet) {
    fmt::print("{}\n{}; cost: {}\n", to_string(spec.model), to_string(session.share()), setup.cost->name());
    std::fflush(stdout);
  }

  std::unique_ptr<StepSource> source =
      input->planned ? std::move(input->planned) : plan_from_corpus(setup, started.saved.source_state);
  std::string last_state = started.saved.source_state;
  TrainOutcome outcome;
  {
    const bool progress = rank == 0 && !options.quiet && (isatty(STDERR_FILENO) != 0);
    RunWriter writer(spec.folder, spec.parallel, rank, setup.cost_is_seconds ? setup.cost.get() : nullptr,
                     started.first_step, spec.training.steps, progress);
    const auto save = [&](std::int64_t steps_done, const std::string& state) {
      CheckpointManifest manifest = manifest_of(setup);
      manifest.step = steps_done;
      manifest.source_state = state;
      last_state = state;
      updates.fill_(optimizer.state().updates);
      const bool writes = mesh.at.dp == 0 && mesh.at.cp == 0;  // the others hold copies
      save_checkpoint(fs::path(spec.folder) / "checkpoints", std::move(manifest),
                      writes ? checkpoint_tensors(model, optimizer, updates, false) : std::vector<NamedTensor>{},
                      *mesh.world, spec.training.keep_checkpoints);
    };
    const auto read = [&corpus = *setup.corpus](std::int64_t id, Tokens begin, std::span<std::int64_t> out) {
      corpus.read(id, {begin, begin + static_cast<Tokens>(out.size())}, out);
    };
    Trainer trainer(model, optimizer, mesh, recorder, hooks, read, spec.training, stop_requested, save);
    outcome = trainer.train(*source, started.first_step, writer);
  }
  mesh.world->barrier();  // all timelines are written
  if (pace && rank == 0 && !options.quiet) {
    const Router* router = mesh.network->router();
    fmt::print(stderr, "emulated: this machine was {:.2f} s late of rank 0's pace, in {:.2f} s of its work{}\n",
               pace->late(), pace->worked(),
               router == nullptr
                   ? ""
                   : fmt::format("; rank 0 passed on {} bytes of others' messages", router->forwarded_bytes()));
  }
  if (rank == 0) finish_run(setup, session, outcome, last_state, command, options);
}

int launch_or_run(const TrainOptions& options, const std::vector<std::string>& arguments) {
  configure_allocator();
  const std::string command = join(arguments, " ");
  const auto identity = rank_identity(process_environment());
  // Read once here for the launch settings; each rank makes its own set-up. One whose file is at fault meets the others
  // all the same, so that they hear of it and it is said once.
  RunSpec stated;
  try {
    stated = read_run_toml(options.request.run_toml, options.request.overrides);
  } catch (const UserError&) {
    if (!identity) throw;
  }
  if (!(stated.launch.timeout_seconds > 0)) stated.launch = LaunchSpec{};
  if (!options.request.emulation_file.empty()) do_not_lease(stated.launch);
  if (identity) {
    return run_as_rank(*identity, stated.launch, [&](RankSession& session) { run_rank(session, options, command); });
  }
  const int ranks = options.nproc > 0 ? options.nproc : stated.parallel.world_size();
  // Refused before anything runs; every rank reads it again.
  read_input(options.request, threads_of_a_rank(stated, ranks), ranks, "--nproc");
  LocalLaunch launch;
  launch.num_ranks = ranks;
  launch.arguments = arguments;
  launch.timeout = stated.launch.timeout_seconds;
  return launch_local_ranks(launch);
}

}  // namespace

void add_train(CLI::App& app, const std::vector<std::string>& arguments) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* verb = app.add_subcommand("train", "Trains on a corpus, on as many ranks as the degrees multiply to");
  verb->footer(
      "Example:\n"
      "  ballast train recipes/quickstart/two_ranks.toml --set run.folder=runs/mine\n"
      "  torchrun --no-python --nproc-per-node 2 ballast train RUN.toml\n");
  verb->add_option("RUN.toml", options->request.run_toml, "What to train, on what, how")->required();
  verb->add_option("--nproc", options->nproc, "Local ranks to start; default: dp x pp x cp")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--resume", options->request.resume, "Go on from the newest checkpoint of the run folder");
  verb->add_option("--plan", options->request.plan_file, "Execute the step plans of this file (a plan.jsonl)");
  verb->add_option("--emulate", options->request.emulation_file,
                   "Pace the ranks as the device of this emulated cluster (see tools/emulated_cluster)");
  verb->add_option("--set", options->request.overrides, "Override a key: section.key=value")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--json", options->json, "Print the summary as JSON");
  verb->add_flag("--quiet", options->quiet, "Print nothing");
  verb->callback([options, arguments] { throw ExitRequest{launch_or_run(*options, arguments)}; });
}

}  // namespace ballast::cli
