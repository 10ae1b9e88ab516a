// Packers decide which documents share a micro-batch. A packer is fed one global batch of documents at a time, in
// arrival order, and returns the steps that have become ready; its whole memory is a PackerState value, so a run can
// stop after any step and go on with the same bytes (requirement W12). Nothing is lost or seen twice: documents in are
// documents out plus documents held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/packer_state.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// What a packer that asks a solver (fixed-solver) has had of it so far.
struct SolverRecord {
  std::int64_t solves = 0;
  std::int64_t proven = 0;  // of them, solved to the proven best
  double worst_gap = 0;     // heaviest window over the proven lower bound, minus 1
  double seconds_mean = 0;
  double seconds_max = 0;
};

class Packer {
 public:
  virtual ~Packer() = default;

  // Takes the documents of one global batch (about N windows of tokens), in arrival order; returns ready steps, none or
  // several. `due_step` of each document must be set. REQUIRES: no document is longer than the window (see intake.h).
  virtual std::vector<PackedStep> add(std::vector<Document> batch) = 0;
  // At the end of the data: takes the last documents, too few for a global batch, and returns the steps that empty the
  // packer. Nothing is held afterwards.
  virtual std::vector<PackedStep> flush(std::vector<Document> last_batch) = 0;
  std::vector<PackedStep> flush() { return flush({}); }

  // Tokens left over from earlier steps that the next step will pack, so that it takes fewer new ones: a step takes
  // documents until it holds N windows of tokens. Documents parked in a queue until N of them meet do not count.
  virtual Tokens backlog_tokens() const = 0;

  // Empty for packers that need no solver.
  virtual SolverRecord solver_record() const { return {}; }

  virtual const PackerState& state() const = 0;
  virtual void restore(PackerState state) = 0;
};

// Throws UserError for an unknown name (with the nearest) or a spec with violations. `cost` must outlive the packer.
std::unique_ptr<Packer> make_packer(const PackingSpec& spec, const CostModel& cost);
std::vector<std::string> packer_names();

}  // namespace ballast
