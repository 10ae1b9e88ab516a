// Which long documents to release into a step, so that its micro-batches come out level: the heart of the pool packer.
// Short documents are so many that they fill whatever is left open, as water does; only long ones need choosing.
#pragma once

#include <cstddef>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

// A long document that could be trained in this step or later.
struct Candidate {
  Tokens tokens = 0;
  Seconds work = 0;  // predicted, whole model
  int domain = 0;
  double waited = 0;  // steps so far
  bool must = false;  // it may wait no longer
};

struct ReleaseProblem {
  std::vector<Candidate> candidates = {};  // most work first
  Tokens short_tokens = 0;                 // of the documents that fill, and their work
  Seconds short_work = 0;
  int micro_batches = 1;   // N
  Tokens cap = 0;          // most tokens of a micro-batch
  Tokens nominal = 0;      // tokens of a step, N S
  double token_swing = 0;  // most that a step's tokens may differ from nominal, as a share of it; 0: as they come
  double delay_price = 0;  // what holding `nominal` tokens for a step is worth, in imbalance
  // The mix of domains, where it counts: else all three are left as they are.
  double mix_weight = 0;                         // what it is worth that all of a step's tokens are of the right domain
  std::vector<double> mix = {};                  // wanted share of the tokens, by domain
  std::vector<Tokens> short_domain_tokens = {};  // of short_tokens, by domain
};

struct Release {
  std::vector<int> bin;  // by candidate: the micro-batch it goes to; -1: it waits
  double imbalance = 1;  // predicted: slowest x N / total, the short ones filled in
};

// The best found of: for every level that one or two candidates reach, fill micro-batches up to it, most work first,
// each to the emptiest or to the fullest that stays below; and all at once. "Best" is the least imbalance above 1 plus
// delay_price for what waits, weighed by how long it has, plus mix_weight for tokens of the wrong domain. Time: levels
// times candidates times log N, levels at most some hundred; deterministic.
Release choose_release(const ReleaseProblem& problem);

}  // namespace ballast
