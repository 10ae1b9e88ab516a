#include "ballast/packing/plain.h"

#include <algorithm>
#include <utility>

#include "ballast/packing/bins.h"
#include "ballast/packing/oversize.h"

namespace ballast {

namespace {

class PlainPacker final : public Packer {
 public:
  PlainPacker(const PackingSpec& spec, bool cuts) : spec_(spec), cuts_(cuts) {}

  std::vector<PackedStep> add(std::vector<Document> batch) override {
    ++state_.batches_taken;
    take(std::move(batch));
    return pack(/*only_full_steps=*/true);
  }

  std::vector<PackedStep> flush(std::vector<Document> last_batch) override {
    take(std::move(last_batch));
    return pack(/*only_full_steps=*/false);
  }

  Tokens backlog_tokens() const override { return pending_tokens_; }
  const PackerState& state() const override { return state_; }

  void restore(PackerState state) override {
    state_ = std::move(state);
    pending_tokens_ = total_tokens(state_.pending);
  }

 private:
  void take(std::vector<Document> batch) {
    pending_tokens_ += total_tokens(batch);
    state_.pending.insert(state_.pending.end(), batch.begin(), batch.end());
  }

  std::vector<PackedStep> pack(bool only_full_steps) {
    const Tokens step_tokens = spec_.window * spec_.micro_batches;
    std::vector<PackedStep> steps;
    std::size_t at = 0;  // first pending document not packed yet
    while (at < state_.pending.size() && (!only_full_steps || pending_tokens_ >= step_tokens)) {
      PackedStep step{.step = state_.next_step++, .micro_batches = {}};
      for (int n = 0; n < spec_.micro_batches; ++n) step.micro_batches.push_back(fill_window(at));
      // What is cut at a step's end would, by its place in the stream, have been due a step later all along.
      if (at < state_.pending.size() && state_.pending[at].begin > 0) {
        state_.pending[at].due_step = std::max(state_.pending[at].due_step, state_.next_step);
      }
      pending_tokens_ -= step.num_tokens();
      steps.push_back(std::move(step));
    }
    state_.pending.erase(state_.pending.begin(), state_.pending.begin() + static_cast<std::ptrdiff_t>(at));
    return steps;
  }

  MicroBatch fill_window(std::size_t& at) {
    MicroBatch window;
    Tokens room = spec_.window;
    while (at < state_.pending.size() && room > 0) {
      Document& next = state_.pending[at];
      if (next.length > room) {
        if (cuts_) window.documents.push_back(cut_front(next, room, state_.counts));
        break;
      }
      room -= next.length;
      window.documents.push_back(next);
      ++at;
    }
    return window;
  }

  PackingSpec spec_;
  bool cuts_;  // the document that crosses a window's end; otherwise it opens the next window whole
  PackerState state_;
  Tokens pending_tokens_ = 0;
};

}  // namespace

std::unique_ptr<Packer> make_plain_packer(const PackingSpec& spec) {
  return std::make_unique<PlainPacker>(spec, /*cuts=*/true);
}

std::unique_ptr<Packer> make_next_fit_packer(const PackingSpec& spec) {
  return std::make_unique<PlainPacker>(spec, /*cuts=*/false);
}

}  // namespace ballast
