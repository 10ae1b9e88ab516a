// From RUN.toml to everything a run is built from, with every check that can be made before a rank starts. The launcher
// makes it once so that bad input is one line and no process; every rank makes it again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/io/corpus.h"
#include "ballast/spec/emulation_spec.h"
#include "ballast/spec/run_spec.h"
#include "ballast/workload/document_stream.h"

namespace ballast::cli {

struct RunRequest {
  std::string run_toml;
  std::vector<std::string> overrides;  // --set
  std::string plan_file;               // --plan: step plans from a file; empty: plan
  bool resume = false;                 // --resume
  std::string emulation_file;          // --emulate: an emulated cluster, whose device paces the ranks; empty: none
};

struct RunSetup {
  RunSpec spec;  // as resolved: vocabulary of the corpus and tuned queues filled in
  std::shared_ptr<Corpus> corpus;
  std::unique_ptr<CostModel> cost;
  std::optional<EmulationSpec> emulation;
  bool cost_is_seconds = false;  // of a profile; a synthetic cost balances but predicts no time
};

// Throws UserError. `threads`: compute threads of a rank, part of the profile's key.
RunSetup set_up_run(const RunRequest& request, int threads);

// On an emulated cluster ranks sleep most of the time, and share no core as if it were theirs.
void do_not_lease(LaunchSpec& launch);

// The run's documents in its order, from the first.
DocumentStream documents_of_run(const RunSpec& spec, const Corpus& corpus);

// Throws UserError where the run folder has steps and --resume is not given, or has none and it is.
void check_run_folder(const RunSpec& spec, bool resume);

// What identifies the corpus of a run in its checkpoints: "9431 documents, 38129312 tokens".
std::string corpus_identity(const Corpus& corpus);

}  // namespace ballast::cli
