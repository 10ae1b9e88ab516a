#include "ballast/packing/wlb.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ballast/packing/tournament.h"

namespace ballast {

namespace {

void sort_longest_first(std::vector<Document>& documents) {
  std::stable_sort(documents.begin(), documents.end(),
                   [](const Document& a, const Document& b) { return a.length > b.length; });
}

// The N micro-batches of the step being filled.
class Bins {
 public:
  Bins(int count, Tokens cap, const CostModel& cost)
      : cap_(cap),
        cost_(cost),
        work_(static_cast<std::size_t>(count)),
        tokens_(static_cast<std::size_t>(count)),
        micro_batches_(static_cast<std::size_t>(count)) {}

  bool place(const Document& document) {
    std::size_t bin = work_.least();
    if (!fits(bin, document)) bin = tokens_.least();
    if (!fits(bin, document)) return false;
    put(bin, document);
    return true;
  }

  // One to each micro-batch, or none at all. `documents` longest first.
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

  std::vector<MicroBatch> take() { return std::move(micro_batches_); }

 private:
  bool fits(std::size_t bin, const Document& document) const { return tokens_[bin] + document.length <= cap_; }

  void put(std::size_t bin, const Document& document) {
    work_.set(bin, work_[bin] + cost_.document(document.length));
    tokens_.set(bin, tokens_[bin] + document.length);
    micro_batches_[bin].documents.push_back(document);
  }

  Tokens cap_;
  const CostModel& cost_;
  Tournament<Seconds> work_;
  Tournament<Tokens> tokens_;
  std::vector<MicroBatch> micro_batches_;
};

class WlbPacker final : public Packer {
 public:
  WlbPacker(const PackingSpec& spec, const CostModel& cost) : spec_(spec), cost_(cost) {
    state_.queues.resize(spec_.queues.size());
  }

  std::vector<PackedStep> add(std::vector<Document> batch) override {
    ++state_.batches_taken;
    std::vector<Document> fresh;
    for (const Document& document : batch) {
      const auto above = std::upper_bound(spec_.queues.begin(), spec_.queues.end(), document.length);
      const std::ptrdiff_t band = above - spec_.queues.begin() - 1;
      (band < 0 ? fresh : state_.queues[static_cast<std::size_t>(band)]).push_back(document);
    }
    return {pack(std::move(fresh))};
  }

  // The queues have nothing more to wait for: all that is held is packed longest first, over as many steps as it takes.
  std::vector<PackedStep> flush(std::vector<Document> last_batch) override {
    for (auto queue = state_.queues.rbegin(); queue != state_.queues.rend(); ++queue) {
      last_batch.insert(last_batch.end(), queue->begin(), queue->end());
      queue->clear();
    }
    last_batch.insert(last_batch.begin(), state_.pending.begin(), state_.pending.end());
    sort_longest_first(last_batch);
    state_.pending = std::move(last_batch);
    std::vector<PackedStep> steps;
    while (!state_.pending.empty()) steps.push_back(pack({}));
    return steps;
  }

  Tokens backlog_tokens() const override {
    Tokens sum = 0;
    for (const Document& document : state_.pending) sum += document.length;
    for (const std::vector<Document>& queue : state_.queues) {
      for (std::size_t i = num_micro_batches(); i < queue.size(); ++i) sum += queue[i].length;
    }
    return sum;
  }

  const PackerState& state() const override { return state_; }

  void restore(PackerState state) override {
    if (state.queues.size() != spec_.queues.size()) {
      throw UserError("packer state has " + std::to_string(state.queues.size()) + " queues, the run has " +
                      std::to_string(spec_.queues.size()) + ": resume with the queues it was made with");
    }
    state_ = std::move(state);
  }

 private:
  std::size_t num_micro_batches() const { return static_cast<std::size_t>(spec_.micro_batches); }

  PackedStep pack(std::vector<Document> fresh) {
    Bins bins(spec_.micro_batches, spec_.cap(), cost_);
    std::vector<Document> left_over;
    const auto place_all = [&](const std::vector<Document>& documents) {
      for (const Document& document : documents) {
        if (!bins.place(document)) left_over.push_back(document);
      }
    };
    place_all(take_overdue());
    for (auto queue = state_.queues.rbegin(); queue != state_.queues.rend(); ++queue) release(*queue, bins);
    place_all(state_.pending);
    sort_longest_first(fresh);
    place_all(fresh);
    state_.pending = std::move(left_over);
    return {.step = state_.next_step++, .micro_batches = bins.take()};
  }

  // Queued documents whose time is up, oldest first.
  std::vector<Document> take_overdue() {
    std::vector<Document> overdue;
    if (spec_.max_delay == 0) return overdue;
    for (std::vector<Document>& queue : state_.queues) {
      const auto fresh = std::find_if(queue.begin(), queue.end(), [&](const Document& document) {
        return state_.next_step - document.due_step < spec_.max_delay;
      });
      overdue.insert(overdue.end(), queue.begin(), fresh);
      queue.erase(queue.begin(), fresh);
    }
    std::stable_sort(overdue.begin(), overdue.end(),
                     [](const Document& a, const Document& b) { return a.arrival < b.arrival; });
    return overdue;
  }

  void release(std::vector<Document>& queue, Bins& bins) {
    if (queue.size() < num_micro_batches()) return;
    const auto end = queue.begin() + static_cast<std::ptrdiff_t>(num_micro_batches());
    std::vector<Document> oldest(queue.begin(), end);
    sort_longest_first(oldest);
    if (bins.place_one_each(oldest)) queue.erase(queue.begin(), end);
  }

  PackingSpec spec_;
  const CostModel& cost_;
  PackerState state_;
};

}  // namespace

std::unique_ptr<Packer> make_wlb_packer(const PackingSpec& spec, const CostModel& cost) {
  return std::make_unique<WlbPacker>(spec, cost);
}

}  // namespace ballast
