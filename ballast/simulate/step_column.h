// One column of a step's mesh: the context parallel ranks of one pipeline rank of one pipeline. They take the same
// actions and meet in every layer, so they are advanced together, as an array of clocks (fast_step.h).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ballast/ir/schedule.h"
#include "ballast/simulate/analysis.h"
#include "ballast/simulate/step_costs.h"
#include "ballast/simulate/zero.h"

namespace ballast {

inline constexpr Seconds kNever = std::numeric_limits<Seconds>::max();

// Sums over all ranks of a step.
class StepTotals {
 public:
  void add(SpanKind kind, Seconds seconds) {
    const auto k = static_cast<std::size_t>(kind);
    seconds_[k] += seconds;
    seen_[k] = true;
  }
  std::map<SpanKind, Seconds> by_kind() const;

  Seconds pipeline_begin = kNever;
  Seconds pipeline_end = std::numeric_limits<Seconds>::lowest();
  Seconds pipeline_busy = 0;
  std::int64_t events = 0;

 private:
  static constexpr std::size_t kNumKinds = static_cast<std::size_t>(SpanKind::CHECKPOINT) + 1;
  std::array<Seconds, kNumKinds> seconds_ = {};
  std::array<bool, kNumKinds> seen_ = {};
};

// The transfers that the columns of one pipeline rank post in the background, in order: the n-th starts when all have
// posted it and the one before is done.
class BackgroundTransfers {
 public:
  explicit BackgroundTransfers(int columns) : columns_(columns) {}

  // What the transfer takes, where this column was the last to post it; else 0. `last`: whether it was.
  Seconds post(std::size_t n, Seconds at, Seconds cost, bool& last);
  // kNever while it is not known.
  Seconds end(std::size_t n) const { return n < transfers_.size() ? transfers_[n].end : kNever; }

 private:
  struct Posted {
    int columns = 0;
    Seconds ready = std::numeric_limits<Seconds>::lowest();
    Seconds cost = 0;
    Seconds end = kNever;
  };
  int columns_;
  Seconds free_ = std::numeric_limits<Seconds>::lowest();
  std::vector<Posted> transfers_;
};

// What a column shares with others.
class ColumnNeighbours {
 public:
  virtual ~ColumnNeighbours() = default;
  // Of the message that `action`, a send or receive of this column, is about: when it left each cp rank; empty while it
  // has not been sent.
  virtual std::vector<Seconds>& mailbox(const Action& action) = 0;
  virtual void message_sent(int to_pp) = 0;  // in the same pipeline
  virtual void transfer_done() = 0;          // of this pipeline rank's background
};

class StepColumn {
 public:
  // All references outlive the column. `transfers`: of this pipeline rank's actions.
  StepColumn(const ParallelDims& dims, const Schedule& schedule, const ProgramSettings& settings,
             const StepCosts& costs, const ZeroTransfers& transfers, RankCoordinate at, BackgroundTransfers& background,
             StepTotals& totals);

  // Goes through the schedule as far as it can; finished() once it is through.
  void run(ColumnNeighbours& neighbours);
  bool finished() const { return finished_; }

  int first_rank() const { return first_rank_; }
  const std::vector<Seconds>& clocks() const { return clocks_; }  // by cp rank
  const std::vector<RankTime>& times() const { return times_; }   // without idle
  std::string waits_at() const;                                   // where it is not finished

  // Every rank works for `seconds`, in a span of its own.
  void compute_all(SpanKind kind, Seconds seconds);
  // Cp rank c takes part in an exchange of which the last member arrives at `last`.
  void meet(std::size_t c, Seconds last, Seconds cost, SpanKind kind);

 private:
  using Part = const std::array<Seconds, 2> ShareCosts::*;

  Seconds compute(std::size_t c, Seconds seconds);
  void compute_each(const std::vector<ShareCosts>& shares, Part part, std::size_t pass);
  void begin_action(ColumnNeighbours& neighbours);
  void post(SpanKind kind, int stage, int slot, int handle, ColumnNeighbours& neighbours);
  Seconds end_of(int handle, int slot) const;
  bool known(int handle, int slot) const { return end_of(handle, slot) < kNever; }
  void await(int handle, int slot);
  bool await_closing();
  void exchange_tensors(std::size_t pass, const std::vector<ShareCosts>& shares);
  void exchange(std::size_t pass, const std::vector<ShareCosts>& shares);
  void attend(std::size_t pass, const std::vector<ShareCosts>& shares);
  void attend_in_rings(std::size_t pass, const std::vector<RingPass>& rings);
  void forward_layer(const std::vector<ShareCosts>& shares);
  bool work(const Action& action, ColumnNeighbours& neighbours);
  void end_work(bool forward, bool gathered, int layers);
  int peer_of(const Action& action) const;
  void send(const Action& action, ColumnNeighbours& neighbours);
  void receive(const Action& action, const std::vector<Seconds>& sent);

  const ParallelDims& dims_;
  const Schedule& schedule_;
  const ProgramSettings& settings_;
  const StepCosts& costs_;
  const std::vector<Action>& actions_;
  const ZeroTransfers& transfers_;
  const std::vector<std::vector<ShareCosts>>& shares_;  // [micro-batch][cp]
  const int pp_;
  const int first_rank_;
  BackgroundTransfers& background_;
  StepTotals& totals_;
  std::vector<double> compute_factor_;
  std::vector<double> pp_factor_;
  double cp_factor_ = 1;
  double dp_cp_factor_ = 1;

  std::vector<Seconds> clocks_;  // by cp rank
  std::vector<Seconds> begins_;  // of the action at hand
  std::vector<RankTime> times_;
  std::size_t next_ = 0;     // action at hand
  std::size_t closing_ = 0;  // of transfers_.at_end, how many were awaited
  bool begun_ = false;
  bool finished_ = false;
  int slot_done_ = 0;   // of the action at hand
  int gathered_ = -1;   // transfer whose weights it awaits; -1: none
  int scattered_ = -1;  // transfer that takes its gradients
  std::size_t num_posted_ = 0;
  std::vector<std::vector<std::size_t>> posted_;  // [handle][slot]: place among the background's transfers
  Seconds work_seconds_ = 0;                      // of the action at hand, all cp ranks
  Seconds tensor_seconds_ = 0;
  std::array<Seconds, 2> kv_seconds_ = {};
};

}  // namespace ballast
