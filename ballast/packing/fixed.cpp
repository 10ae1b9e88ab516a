#include "ballast/packing/fixed.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "ballast/packing/bins.h"
#include "ballast/solver/min_max_assignment.h"

namespace ballast {

namespace {

double square(Tokens length) { return static_cast<double>(length) * static_cast<double>(length); }

// Windows of S tokens by their sum of squares. Documents come longest first, so a window without room for this one may
// have room for a later one: it waits in `full_`, by room, and returns. Each placement moves a window at most twice, so
// a document takes log time.
class Windows {
 public:
  Windows(std::size_t count, Tokens window) : room_(count, window), sum_of_squares_(count, 0), documents_(count) {
    for (std::size_t w = 0; w < count; ++w) open_.emplace(0.0, w);
  }

  // `documents` longest first. Returns those that fit nowhere.
  std::vector<Document> place(const std::vector<Document>& documents) {
    while (!full_.empty()) reopen();
    std::vector<Document> left_over;
    for (const Document& document : documents) {
      while (!full_.empty() && full_.top().first >= document.length) reopen();
      while (!open_.empty() && room_[open_.top().second] < document.length) {
        full_.emplace(room_[open_.top().second], open_.top().second);
        open_.pop();
      }
      if (open_.empty()) {
        left_over.push_back(document);
        continue;
      }
      const std::size_t w = open_.top().second;
      open_.pop();
      room_[w] -= document.length;
      sum_of_squares_[w] += square(document.length);
      documents_[w].documents.push_back(document);
      open_.emplace(sum_of_squares_[w], w);
    }
    return left_over;
  }

  // Heaviest first; each is taken once.
  std::vector<MicroBatch> take() {
    std::vector<std::size_t> order(documents_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sum_of_squares_[a] > sum_of_squares_[b]; });
    std::vector<MicroBatch> taken;
    taken.reserve(order.size());
    for (const std::size_t w : order) taken.push_back(std::move(documents_[w]));
    return taken;
  }

 private:
  void reopen() {
    open_.emplace(sum_of_squares_[full_.top().second], full_.top().second);
    full_.pop();
  }

  using Open = std::pair<double, std::size_t>;
  using Full = std::pair<Tokens, std::size_t>;
  std::vector<Tokens> room_;
  std::vector<double> sum_of_squares_;
  std::vector<MicroBatch> documents_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;  // least sum first
  std::priority_queue<Full> full_;                                     // most room first
};

class FixedPacker final : public Packer {
 public:
  FixedPacker(const PackingSpec& spec, bool solves) : spec_(spec), solves_(solves) {}

  SolverRecord solver_record() const override { return record_; }

  std::vector<PackedStep> add(std::vector<Document> batch) override {
    take(std::move(batch));
    ++state_.batches_taken;
    if (gathered() > 0) return {};
    return pack(spec_.global_batches);
  }

  std::vector<PackedStep> flush(std::vector<Document> last_batch) override {
    take(std::move(last_batch));
    std::vector<PackedStep> steps;
    while (!state_.pending.empty()) {
      const Tokens step_tokens = spec_.window * spec_.micro_batches;
      const Tokens num_steps = std::max<Tokens>(1, (pending_tokens_ + step_tokens - 1) / step_tokens);
      for (PackedStep& step : pack(num_steps)) steps.push_back(std::move(step));
    }
    return steps;
  }

  Tokens backlog_tokens() const override {
    return std::max<Tokens>(0, pending_tokens_ - gathered() * spec_.window * spec_.micro_batches);
  }

  const PackerState& state() const override { return state_; }

  void restore(PackerState state) override {
    state_ = std::move(state);
    pending_tokens_ = total_tokens(state_.pending);
  }

 private:
  // Global batches that wait in `pending` for the rest of their K.
  std::int64_t gathered() const { return state_.batches_taken % spec_.global_batches; }

  void take(std::vector<Document> batch) {
    pending_tokens_ += total_tokens(batch);
    state_.pending.insert(state_.pending.end(), batch.begin(), batch.end());
  }

  std::vector<PackedStep> pack(std::int64_t num_steps) {
    const auto num_micro_batches = static_cast<std::size_t>(spec_.micro_batches);
    Windows windows(static_cast<std::size_t>(num_steps) * num_micro_batches, spec_.window);
    // Left-overs are those due before the first step that is packed now.
    const auto fresh =
        std::stable_partition(state_.pending.begin(), state_.pending.end(),
                              [&](const Document& document) { return document.due_step < state_.next_step; });
    std::vector<Document> left_over;
    for (std::vector<Document> documents :
         {std::vector<Document>(state_.pending.begin(), fresh), std::vector<Document>(fresh, state_.pending.end())}) {
      std::stable_sort(documents.begin(), documents.end(),
                       [](const Document& a, const Document& b) { return a.length > b.length; });
      for (const Document& document : windows.place(documents)) left_over.push_back(document);
    }
    state_.pending = std::move(left_over);

    std::vector<PackedStep> steps;
    std::vector<MicroBatch> packed = windows.take();
    if (solves_) improve(packed);
    for (std::size_t first = 0; first < packed.size(); first += num_micro_batches) {
      PackedStep step{.step = state_.next_step++, .micro_batches = {}};
      for (std::size_t m = first; m < first + num_micro_batches; ++m)
        step.micro_batches.push_back(std::move(packed[m]));
      pending_tokens_ -= step.num_tokens();
      steps.push_back(std::move(step));
    }
    return steps;
  }

  // The same documents in as many windows, the heaviest as light as the solver can make it; heaviest first again.
  void improve(std::vector<MicroBatch>& windows) {
    MinMaxAssignment problem{.num_bins = static_cast<int>(windows.size()), .capacity = spec_.window};
    std::vector<Document> documents;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      for (const Document& document : windows[w].documents) {
        documents.push_back(document);
        problem.weights.push_back(square(document.length));
        problem.sizes.push_back(document.length);
        problem.start.push_back(static_cast<int>(w));
      }
      windows[w].documents.clear();
    }
    if (documents.empty()) return;
    const MinMaxResult result = solve(problem);
    std::vector<double> weight(windows.size());
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const auto w = static_cast<std::size_t>(result.bin[i]);
      windows[w].documents.push_back(documents[i]);
      weight[w] += problem.weights[i];
    }
    std::vector<std::size_t> order(windows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
    std::vector<MicroBatch> sorted;
    for (const std::size_t w : order) sorted.push_back(std::move(windows[w]));
    windows = std::move(sorted);
    record_.seconds_mean = (record_.seconds_mean * static_cast<double>(record_.solves) + result.seconds) /
                           static_cast<double>(record_.solves + 1);
    record_.seconds_max = std::max(record_.seconds_max, result.seconds);
    ++record_.solves;
    record_.proven += result.proven ? 1 : 0;
    record_.worst_gap = std::max(record_.worst_gap, result.gap());
  }

  PackingSpec spec_;
  bool solves_;
  SolverRecord record_;
  PackerState state_;
  Tokens pending_tokens_ = 0;
};

}  // namespace

std::unique_ptr<Packer> make_fixed_greedy_packer(const PackingSpec& spec) {
  return std::make_unique<FixedPacker>(spec, false);
}

std::unique_ptr<Packer> make_fixed_solver_packer(const PackingSpec& spec) {
  return std::make_unique<FixedPacker>(spec, true);
}

}  // namespace ballast
