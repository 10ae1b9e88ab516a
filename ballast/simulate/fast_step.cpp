#include "ballast/simulate/fast_step.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "ballast/simulate/step_column.h"

namespace ballast {

namespace {

class Step final {
 public:
  Step(const ParallelDims& dims, const Schedule& schedule, const ProgramSettings& settings, const StepCosts& costs)
      : settings_(settings), costs_(costs), dims_(dims) {
    for (const auto& actions : schedule.ranks) transfers_.push_back(zero_transfers(actions, settings.zero));
    background_.assign(static_cast<std::size_t>(dims_.pp), BackgroundTransfers(dims_.dp));
    columns_.reserve(static_cast<std::size_t>(dims_.dp * dims_.pp));
    for (int dp = 0; dp < dims_.dp; ++dp) {
      for (int pp = 0; pp < dims_.pp; ++pp) {
        const auto p = static_cast<std::size_t>(pp);
        columns_.emplace_back(dims, schedule, settings, costs, transfers_[p], RankCoordinate{.dp = dp, .pp = pp},
                              background_[p], totals_);
      }
    }
    micro_batches_ = static_cast<std::size_t>(schedule.num_micro_batches);
    const std::size_t messages = static_cast<std::size_t>(schedule.num_stages()) * 2 * micro_batches_;
    mailboxes_.resize(static_cast<std::size_t>(dims_.dp), std::vector<std::vector<Seconds>>(messages));
  }

  FastStep run() {
    queued_.assign(columns_.size(), true);
    for (std::size_t i = columns_.size(); i > 0; --i) ready_.push_back(i - 1);
    while (!ready_.empty()) {
      const std::size_t at = ready_.back();
      ready_.pop_back();
      queued_[at] = false;
      Neighbours neighbours(*this, at);
      columns_[at].run(neighbours);
    }
    for (const StepColumn& column : columns_) {
      if (column.finished()) continue;
      throw RunError("the step never finishes: rank " + std::to_string(column.first_rank()) + " waits at " +
                     column.waits_at());
    }
    close();
    return result();
  }

 private:
  class Neighbours final : public ColumnNeighbours {
   public:
    Neighbours(Step& step, std::size_t at) : step_(step), at_(at), dp_(at / static_cast<std::size_t>(step.dims_.pp)) {}

    std::vector<Seconds>& mailbox(const Action& action) override {
      // By the sender's stage.
      const int stage = action.kind == ActionKind::RECV_F   ? action.stage - 1
                        : action.kind == ActionKind::RECV_B ? action.stage + 1
                                                            : action.stage;
      const bool forward = action.kind == ActionKind::SEND_F || action.kind == ActionKind::RECV_F;
      return step_.mailboxes_[dp_][(static_cast<std::size_t>(stage) * 2 + (forward ? 0 : 1)) * step_.micro_batches_ +
                                   static_cast<std::size_t>(action.micro_batch)];
    }
    void message_sent(int to_pp) override {
      step_.wake(dp_ * static_cast<std::size_t>(step_.dims_.pp) + static_cast<std::size_t>(to_pp));
    }
    void transfer_done() override {
      const auto pp = static_cast<std::size_t>(step_.dims_.pp);
      for (std::size_t other = at_ % pp; other < step_.columns_.size(); other += pp) {
        if (other != at_) step_.wake(other);
      }
    }

   private:
    Step& step_;
    const std::size_t at_;
    const std::size_t dp_;
  };

  void wake(std::size_t column) {
    if (queued_[column] || columns_[column].finished()) return;
    queued_[column] = true;
    ready_.push_back(column);
  }

  StepColumn& column(int dp, int pp) { return columns_[static_cast<std::size_t>(dp * dims_.pp + pp)]; }

  // The ranks first_cp to end_cp - 1 of these columns meet, at the pace of the slowest.
  void meet(const std::vector<StepColumn*>& columns, Axis axis, SpanKind kind, const std::vector<Seconds>& seconds,
            std::size_t first_cp, std::size_t end_cp) {
    Seconds last = std::numeric_limits<Seconds>::lowest();
    Seconds cost = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (std::size_t c = first_cp; c < end_cp; ++c) {
        last = std::max(last, columns[i]->clocks()[c]);
        cost = std::max(cost, seconds[i] * costs_.factor(axis, columns[i]->first_rank() + static_cast<int>(c)));
      }
    }
    for (StepColumn* column : columns) {
      for (std::size_t c = first_cp; c < end_cp; ++c) column->meet(c, last, cost, kind);
    }
    totals_.events += static_cast<std::int64_t>(columns.size() * (end_cp - first_cp));
  }

  void meet_world(SpanKind kind, const TransferCost& transfer) {
    std::vector<StepColumn*> all;
    for (StepColumn& column : columns_) all.push_back(&column);
    meet(all, Axis::world, kind, std::vector<Seconds>(all.size(), transfer.seconds), 0, num_cp());
  }

  const ClosingCosts& closing(int pp) const { return costs_.closing[static_cast<std::size_t>(pp)]; }
  std::size_t num_cp() const { return static_cast<std::size_t>(dims_.cp); }

  // What follows the last action.
  void close() {
    if (closing(0).holds_tied) {
      for (int dp = 0; dp < dims_.dp; ++dp) {
        std::vector<StepColumn*> ends = {&column(dp, 0)};
        std::vector<Seconds> seconds = {closing(0).reduce_tied.seconds};
        if (dims_.pp > 1) {
          ends.push_back(&column(dp, dims_.pp - 1));
          seconds.push_back(closing(dims_.pp - 1).reduce_tied.seconds);
        }
        for (std::size_t c = 0; c < num_cp(); ++c) meet(ends, Axis::tied, SpanKind::REDUCE_TIED, seconds, c, c + 1);
      }
    }
    if (settings_.zero == 0) {
      for (int pp = 0; pp < dims_.pp; ++pp) {
        std::vector<StepColumn*> replicas;
        for (int dp = 0; dp < dims_.dp; ++dp) replicas.push_back(&column(dp, pp));
        const std::vector<Seconds> seconds(replicas.size(), closing(pp).reduce_gradients.seconds);
        meet(replicas, Axis::dp_cp, SpanKind::REDUCE_GRAD, seconds, 0, num_cp());
      }
    }
    meet_world(SpanKind::REDUCE_NORM, costs_.reduce_norm);
    for (int dp = 0; dp < dims_.dp; ++dp) {
      for (int pp = 0; pp < dims_.pp; ++pp) {
        column(dp, pp).compute_all(SpanKind::OPTIMIZER, closing(pp).optimizer);
        if (costs_.checkpoint > 0) column(dp, pp).compute_all(SpanKind::CHECKPOINT, costs_.checkpoint);
      }
    }
    meet_world(SpanKind::CONTROL, costs_.control);
  }

  FastStep result() {
    FastStep step;
    step.events = totals_.events;
    StepTime& time = step.time;
    time.seconds_by_kind = totals_.by_kind();
    for (const StepColumn& column : columns_) {
      for (const Seconds clock : column.clocks()) time.end = std::max(time.end, clock);
    }
    for (const StepColumn& column : columns_) {
      for (const RankTime& rank : column.times()) {
        time.ranks.push_back(rank);
        time.ranks.back().idle = std::max(0.0, time.step_seconds() - rank.work - rank.communication - rank.wait);
      }
    }
    const Seconds window = (totals_.pipeline_end - totals_.pipeline_begin) * static_cast<double>(time.ranks.size());
    if (window > 0) time.bubble_share = std::max(0.0, 1 - totals_.pipeline_busy / window);
    return step;
  }

  const ProgramSettings& settings_;
  const StepCosts& costs_;
  const ParallelDims dims_;
  StepTotals totals_;
  std::vector<ZeroTransfers> transfers_;         // by pipeline rank
  std::vector<BackgroundTransfers> background_;  // by pipeline rank
  std::vector<StepColumn> columns_;              // pipeline after pipeline
  std::size_t micro_batches_ = 0;
  std::vector<std::vector<std::vector<Seconds>>> mailboxes_;  // [dp][stage, direction, micro-batch][cp]
  std::vector<std::size_t> ready_;                            // columns that may be able to go on
  std::vector<bool> queued_;
};

}  // namespace

FastStep fast_step(const ParallelDims& dims, const Schedule& schedule, const StepCosts& costs,
                   const ProgramSettings& settings) {
  return Step(dims, schedule, settings, costs).run();
}

FastStep fast_step(const StepPlan& plan, const ModelSpec& model, const CostModel& cost,
                   const ProgramSettings& settings) {
  FastStep step = fast_step(plan.dims, plan.schedule, step_costs(plan, model, cost, settings), settings);
  step.time.step = plan.step;
  return step;
}

}  // namespace ballast
