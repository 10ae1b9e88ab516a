#include "ballast/packing/wlb.h"

#include <algorithm>
#include <utility>

#include "ballast/packing/bins.h"

namespace ballast {

namespace {

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
    return steps_of(pack(std::move(fresh)), state_);
  }

  // The queues have nothing more to wait for: all that is held is packed longest first, over as many steps as it takes.
  std::vector<PackedStep> flush(std::vector<Document> last_batch) override {
    hold_longest_first(state_, std::move(last_batch));
    std::vector<PackedStep> steps;
    while (!state_.pending.empty()) steps.push_back(pack({}));
    return steps;
  }

  Tokens backlog_tokens() const override {
    Tokens sum = total_tokens(state_.pending);
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
    Bins bins(spec_, cost_);
    std::vector<Document> left_over;
    bins.place_all(take_overdue(), left_over);
    const TokenBounds bounds = token_bounds(spec_);
    const Tokens without_queues = total_tokens(state_.pending) + total_tokens(fresh);
    for (auto queue = state_.queues.rbegin(); queue != state_.queues.rend(); ++queue) {
      release(*queue, bounds.most - without_queues, bins);
    }
    bins.place_all(take_oldest(bounds.least - without_queues - bins.total_tokens()), left_over);
    bins.place_all(state_.pending, left_over);
    sort_longest_first(fresh);
    bins.place_all(fresh, left_over);
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

  // `room`: tokens that all queues may bring into this step.
  void release(std::vector<Document>& queue, Tokens room, Bins& bins) {
    if (queue.size() < num_micro_batches()) return;
    const auto end = queue.begin() + static_cast<std::ptrdiff_t>(num_micro_batches());
    std::vector<Document> oldest(queue.begin(), end);
    if (bins.total_tokens() + total_tokens(oldest) > room) return;
    sort_longest_first(oldest);
    if (bins.place_one_each(oldest)) queue.erase(queue.begin(), end);
  }

  // Queued documents that this step needs to hold `missing` tokens more, or that are too many to be held: oldest first.
  std::vector<Document> take_oldest(Tokens missing) {
    std::vector<Document> taken;
    Tokens held = 0;
    for (const std::vector<Document>& queue : state_.queues) held += total_tokens(queue);
    while (held > 0 && (missing > 0 || (spec_.max_held > 0 && held > spec_.max_held))) {
      auto oldest = state_.queues.end();
      for (auto queue = state_.queues.begin(); queue != state_.queues.end(); ++queue) {
        if (queue->empty()) continue;
        if (oldest == state_.queues.end() || queue->front().arrival < oldest->front().arrival) oldest = queue;
      }
      taken.push_back(oldest->front());
      oldest->erase(oldest->begin());
      held -= taken.back().length;
      missing -= taken.back().length;
    }
    return taken;
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
