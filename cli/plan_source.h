// The trainer's step plans: planned ahead from the corpus, or read from a file.
#pragma once

#include <memory>
#include <string>

#include "ballast/runtime/train/step_source.h"
#include "cli/run_setup.h"

namespace ballast::cli {

// Plans from the corpus on a thread of its own, ahead of their use. `state`: from a checkpoint, as SourcedStep's
// state_after; empty: from the start. `setup` outlives the source.
std::unique_ptr<StepSource> plan_from_corpus(const RunSetup& setup, const std::string& state);

// The plans of a file, from the one with number `first_step` on. Throws UserError naming file and line for a plan that
// is broken, of other degrees or layers than the run's, or of documents that the corpus lacks.
std::unique_ptr<StepSource> plans_from_file(const RunSetup& setup, const std::string& path, std::int64_t first_step);

}  // namespace ballast::cli
