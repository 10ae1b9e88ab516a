#include "ballast/simulate/goodput.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ballast/base/error.h"
#include "ballast/base/random.h"

namespace ballast {

namespace {

constexpr Seconds kDay = 86400;
constexpr Seconds kNever = std::numeric_limits<Seconds>::infinity();

// How fast the store serves all ranks together.
double store_rate(const GoodputSubject& subject) {
  const StorageSpec& storage = subject.storage;
  if (storage.bytes_per_second <= 0) return 0;
  if (storage.gpu_bytes_per_second <= 0) return storage.bytes_per_second;
  return std::min(storage.bytes_per_second, storage.gpu_bytes_per_second * subject.gpus);
}

Seconds seconds_of(double bytes, double rate) { return rate > 0 ? bytes / rate : 0; }

// One run, from its start to the horizon.
class Run {
 public:
  Run(const GoodputSubject& subject, std::int64_t checkpoint_every, Random& random)
      : subject_(subject),
        every_(checkpoint_every),
        random_(random),
        rate_(store_rate(subject)),
        failure_rate_(subject.faults.failures_per_gpu_day * subject.gpus / kDay) {}

  Goodput play() {
    next_failure_ = draw_failure();
    while (now_ < subject_.horizon) {
      if (!step()) restart();
    }
    // What the last checkpoint does not hold counts as well: the run is at its end, not lost.
    keep(pending_);
    keep(unwritten_);
    return result_;
  }

 private:
  // What steps since the last checkpoint have cost and brought.
  struct Pending {
    Seconds useful = 0;
    Seconds loading = 0;
    Seconds checkpoints = 0;
    double tokens = 0;

    Seconds seconds() const { return useful + loading + checkpoints; }
    void add(const Pending& other) {
      useful += other.useful;
      loading += other.loading;
      checkpoints += other.checkpoints;
      tokens += other.tokens;
    }
  };

  Seconds draw_failure() {
    if (failure_rate_ <= 0) return kNever;
    return now_ - std::log1p(-random_.uniform()) / failure_rate_;
  }

  void keep(const Pending& done) {
    result_.useful += done.useful;
    result_.loading += done.loading;
    result_.checkpoints += done.checkpoints;
    result_.tokens += done.tokens;
  }

  // Lets `seconds` pass; false where something failed before they were over, or the horizon came.
  bool pass(Seconds seconds) {
    const Seconds end = now_ + seconds;
    if (std::min(next_failure_, subject_.horizon) >= end) {
      now_ = end;
      return true;
    }
    failed_ = next_failure_ < subject_.horizon;
    now_ = std::min(next_failure_, subject_.horizon);
    return false;
  }

  // A step, with the documents of the next read beside it and a checkpoint after it where one is due.
  bool step() {
    const std::size_t n = static_cast<std::size_t>(at_) % subject_.step_seconds.size();
    const Seconds work = subject_.step_seconds[n];
    const double reading = static_cast<double>(subject_.step_tokens[n]) * subject_.storage.loader_bytes_per_token;
    const Seconds loading = std::max(0.0, read_beside(reading) - work);
    const Seconds begin = now_;
    if (!pass(work + loading)) return cut_short(begin);
    unwritten_.add({.useful = work, .loading = loading, .tokens = static_cast<double>(subject_.step_tokens[n])});
    ++at_;
    progress_write(work + loading, reading);
    if (at_ % every_ != 0) return true;
    return subject_.storage.background_checkpoints ? start_background() : write_now();
  }

  // Until the documents of a step are there: a checkpoint being written takes half of the store.
  Seconds read_beside(double bytes) const {
    const Seconds alone = seconds_of(bytes, rate_);
    if (writing_ <= 0) return alone;
    const Seconds write_alone = seconds_of(writing_, rate_);
    return alone <= write_alone ? 2 * alone : alone + write_alone;
  }

  // What of the background checkpoint `seconds` have written, while `reading` bytes were read as well.
  void progress_write(Seconds seconds, double reading) {
    if (writing_ <= 0) return;
    const Seconds both = std::min(seconds, 2 * seconds_of(std::min(reading, writing_), rate_));
    writing_ -= rate_ * (both / 2 + (seconds - both));
    if (writing_ > 0) return;
    writing_ = 0;
    keep(pending_);  // it is whole: what it holds is safe
    pending_ = {};
    saved_at_ = writing_at_;
  }

  bool start_background() {
    const Seconds begin = now_;
    if (writing_ > 0) {  // the one before has to end first
      const Seconds wait = seconds_of(writing_, rate_);
      if (!pass(wait)) return cut_short(begin);
      unwritten_.checkpoints += wait;
      progress_write(wait, 0);
    }
    pending_.add(unwritten_);
    unwritten_ = {};
    writing_at_ = at_;
    writing_ = static_cast<double>(subject_.checkpoint_bytes);
    if (rate_ <= 0) {
      writing_ = 1;
      progress_write(1, 0);
    }
    return true;
  }

  bool write_now() {
    const Seconds begin = now_;
    const Seconds cost = checkpoint_seconds(subject_);
    if (!pass(cost)) return cut_short(begin);
    unwritten_.checkpoints += cost;
    keep(unwritten_);
    unwritten_ = {};
    saved_at_ = at_;
    return true;
  }

  // The part of an action that a failure (or the horizon) cut off did nothing.
  bool cut_short(Seconds begin) {
    if (!failed_) {  // the horizon: what is not safe counts, the action at hand does not
      keep(pending_);
      keep(unwritten_);
      pending_ = unwritten_ = {};
      result_.lost += now_ - begin;
      return true;
    }
    result_.lost += now_ - begin + pending_.seconds() + unwritten_.seconds();
    pending_ = unwritten_ = {};
    writing_ = 0;
    return false;
  }

  void restart() {
    const Seconds whole = subject_.faults.restart_seconds + checkpoint_seconds(subject_);
    const Seconds begin = now_;
    bool done = false;
    while (!done && now_ < subject_.horizon) {
      ++result_.failures;
      next_failure_ = draw_failure();
      done = pass(whole);
    }
    result_.restarts += now_ - begin;
    at_ = saved_at_;
  }

  const GoodputSubject& subject_;
  const std::int64_t every_;
  Random& random_;
  const double rate_;          // bytes a second of the store; 0: it costs nothing
  const double failure_rate_;  // a second
  Seconds now_ = 0;
  Seconds next_failure_ = kNever;
  bool failed_ = false;          // what ended the last pass() early: a failure, or else the horizon
  std::int64_t at_ = 0;          // steps done
  std::int64_t saved_at_ = 0;    // as of the last whole checkpoint
  std::int64_t writing_at_ = 0;  // of the checkpoint being written
  double writing_ = 0;           // bytes of it still to be written
  Pending pending_;              // held by the checkpoint being written
  Pending unwritten_;            // held by none
  Goodput result_;
};

}  // namespace

double Goodput::share() const {
  const Seconds all = useful + loading + checkpoints + lost + restarts;
  return all > 0 ? useful / all : 1;
}

Seconds checkpoint_seconds(const GoodputSubject& subject) {
  return seconds_of(static_cast<double>(subject.checkpoint_bytes), store_rate(subject));
}

Goodput simulate_goodput(const GoodputSubject& subject, std::int64_t checkpoint_every, int runs) {
  BALLAST_ASSERT(!subject.step_seconds.empty() && subject.step_seconds.size() == subject.step_tokens.size(),
                 "steps without tokens");
  BALLAST_ASSERT(checkpoint_every >= 1 && runs >= 1, "an interval and a run");
  Random random(subject.seed);
  Goodput mean{.checkpoint_every = checkpoint_every};
  for (int run = 0; run < runs; ++run) {
    const Goodput one = Run(subject, checkpoint_every, random).play();
    mean.useful += one.useful / runs;
    mean.loading += one.loading / runs;
    mean.checkpoints += one.checkpoints / runs;
    mean.lost += one.lost / runs;
    mean.restarts += one.restarts / runs;
    mean.failures += one.failures / runs;
    mean.tokens += one.tokens / runs;
  }
  return mean;
}

double young_interval_steps(const GoodputSubject& subject) {
  const double rate = subject.faults.failures_per_gpu_day * subject.gpus / kDay;
  if (rate <= 0) return 0;
  const Seconds step = std::accumulate(subject.step_seconds.begin(), subject.step_seconds.end(), 0.0) /
                       static_cast<double>(subject.step_seconds.size());
  return std::sqrt(2 * checkpoint_seconds(subject) / rate) / step;
}

std::vector<std::int64_t> intervals_to_try(const GoodputSubject& subject) {
  const double young = young_interval_steps(subject);
  std::vector<std::int64_t> intervals;
  for (int power = -4; power <= 4; ++power) {
    const auto steps = std::max<std::int64_t>(1, std::llround(young * std::exp2(power)));
    if (intervals.empty() || intervals.back() != steps) intervals.push_back(steps);
  }
  return intervals;
}

}  // namespace ballast
