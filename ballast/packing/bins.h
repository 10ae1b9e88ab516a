// The N micro-batches of a step that is being filled: predicted work and tokens of each, the least of both at hand.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ballast/base/tournament.h"
#include "ballast/cost/cost_model.h"
#include "ballast/ir/packed_step.h"
#include "ballast/ir/packer_state.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

inline Tokens total_tokens(const std::vector<Document>& documents) {
  return std::accumulate(documents.begin(), documents.end(), Tokens{0},
                         [](Tokens sum, const Document& document) { return sum + document.length; });
}

// How many tokens a step may hold, by the spec's token_swing.
struct TokenBounds {
  Tokens least = 0;
  Tokens most = std::numeric_limits<Tokens>::max();
};

inline TokenBounds token_bounds(const PackingSpec& spec) {
  if (spec.token_swing <= 0) return {};
  const double nominal = static_cast<double>(spec.window) * spec.micro_batches;
  return {static_cast<Tokens>(std::ceil(nominal * (1 - spec.token_swing))),
          static_cast<Tokens>(nominal * (1 + spec.token_swing))};
}

inline void sort_longest_first(std::vector<Document>& documents) {
  std::stable_sort(documents.begin(), documents.end(),
                   [](const Document& a, const Document& b) { return a.length > b.length; });
}

// At the end of the data: everything that is held and the last batch into `pending`, longest first; queues are emptied,
// the longest band first.
inline void hold_longest_first(PackerState& state, std::vector<Document> last_batch) {
  for (auto queue = state.queues.rbegin(); queue != state.queues.rend(); ++queue) {
    last_batch.insert(last_batch.end(), queue->begin(), queue->end());
    queue->clear();
  }
  last_batch.insert(last_batch.begin(), state.pending.begin(), state.pending.end());
  sort_longest_first(last_batch);
  state.pending = std::move(last_batch);
}

// A step that holds no document is none: an update without a gradient would still move the weights. Its batch, all of
// which waits, then counts with the next one.
inline std::vector<PackedStep> steps_of(PackedStep step, PackerState& state) {
  for (const MicroBatch& micro_batch : step.micro_batches) {
    if (!micro_batch.documents.empty()) return {std::move(step)};
  }
  --state.next_step;
  --state.batches_taken;
  return {};
}

class Bins {
 public:
  // N micro-batches under the spec's caps. `cost` outlives the bins.
  Bins(const PackingSpec& spec, const CostModel& cost)
      : cap_(spec.cap()),
        most_documents_(static_cast<std::size_t>(spec.max_documents)),
        cost_(cost),
        work_(static_cast<std::size_t>(spec.micro_batches)),
        tokens_(static_cast<std::size_t>(spec.micro_batches)),
        micro_batches_(static_cast<std::size_t>(spec.micro_batches)) {}

  // To the micro-batch of least work if it fits, else to the one of fewest tokens if it fits (W4). False: to none.
  bool place(const Document& document) {
    std::size_t bin = work_.least();
    if (!fits(bin, document)) bin = tokens_.least();
    if (!fits(bin, document)) return false;
    put(bin, document);
    return true;
  }

  // Each in turn; what fits nowhere is appended to `left_over`.
  void place_all(const std::vector<Document>& documents, std::vector<Document>& left_over) {
    for (const Document& document : documents) {
      if (!place(document)) left_over.push_back(document);
    }
  }

  // One to each micro-batch, the longest to the one of least work, or none at all. `documents` longest first.
  bool place_one_each(const std::vector<Document>& documents) {
    std::vector<std::size_t> order(documents.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work_[a] < work_[b]; });
    for (std::size_t i = 0; i < documents.size(); ++i) {
      if (!fits(order[i], documents[i])) return false;
    }
    for (std::size_t i = 0; i < documents.size(); ++i) put(order[i], documents[i]);
    return true;
  }

  bool fits(std::size_t bin, const Document& document) const { return tokens_[bin] + document.length <= cap_; }

  void put(std::size_t bin, const Document& document) {
    work_.set(bin, work_[bin] + cost_.document(document.length));
    tokens_.set(bin, tokens_[bin] + document.length);
    total_tokens_ += document.length;
    micro_batches_[bin].documents.push_back(document);
    if (most_documents_ > 0 && micro_batches_[bin].documents.size() == most_documents_) close(bin);
  }

  Tokens total_tokens() const { return total_tokens_; }

  std::vector<MicroBatch> take() { return std::move(micro_batches_); }

 private:
  // It has as many documents as it may: never the least of anything again.
  void close(std::size_t bin) {
    work_.set(bin, std::numeric_limits<Seconds>::infinity());
    tokens_.set(bin, cap_ + 1);
  }

  Tokens cap_;
  std::size_t most_documents_;  // 0: no bound
  const CostModel& cost_;
  Tokens total_tokens_ = 0;
  Tournament<Seconds> work_;
  Tournament<Tokens> tokens_;
  std::vector<MicroBatch> micro_batches_;
};

}  // namespace ballast
