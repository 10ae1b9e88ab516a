// What a run gets done in a time, with failures, checkpoints and a store that both checkpoints and documents need
// (requirement L12): goodput is the tokens that count over those that undisturbed steps would have trained. A run of
// steps is played through event by event; nothing is a formula, so that Young's rule can be held against it.
#pragma once

#include <cstdint>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/spec/fault_spec.h"

namespace ballast {

struct GoodputSubject {
  std::vector<Seconds> step_seconds;  // undisturbed, repeated in turn
  std::vector<Tokens> step_tokens;    // the same steps'
  int gpus = 1;
  Bytes checkpoint_bytes = 0;  // of all ranks together
  FaultSpec faults;
  StorageSpec storage;
  Seconds horizon = 0;  // how long the run goes on
  std::uint64_t seed = 1;
};

// Where the horizon went, in seconds; the parts add up to it.
struct Goodput {
  std::int64_t checkpoint_every = 0;  // steps
  Seconds useful = 0;                 // steps that count, undisturbed
  Seconds loading = 0;                // steps waited for documents
  Seconds checkpoints = 0;            // steps waited for a checkpoint
  Seconds lost = 0;                   // work since the last checkpoint, when something failed
  Seconds restarts = 0;               // detection, restart, reading the checkpoint
  double failures = 0;
  double tokens = 0;  // that count

  double share() const;  // useful over all
};

// Writing (or reading) a checkpoint with the store to itself.
Seconds checkpoint_seconds(const GoodputSubject& subject);

// Mean over `runs` runs that differ in when things fail. A checkpoint counts once it is written whole. A background
// checkpoint shares the store evenly with the reading of documents; the documents of the next step are read while one
// runs. Failures come at a constant rate, those during a restart start it anew. REQUIRES: as many step_seconds as
// step_tokens, one or more; checkpoint_every is 1 or more.
Goodput simulate_goodput(const GoodputSubject& subject, std::int64_t checkpoint_every, int runs);

// Young's rule (1974): sqrt(2 x cost of a checkpoint x time between failures), in steps; 0 where nothing ever fails.
double young_interval_steps(const GoodputSubject& subject);

// Intervals around Young's rule, rising: from a sixteenth of it to sixteen times it, each twice the one before.
std::vector<std::int64_t> intervals_to_try(const GoodputSubject& subject);

}  // namespace ballast
