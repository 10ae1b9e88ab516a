// The pace of a rank on an emulated cluster: each part of its work ends when the device it stands for would be done.
#pragma once

#include <chrono>
#include <string_view>

#include "ballast/cost/cost_model.h"
#include "ballast/runtime/profiler/span_recorder.h"

namespace ballast::cli {

// Passes on to `inner` all that RankHooks are told. Used by the rank's own thread; all outlive it.
class EmulatedPace final : public RankHooks {
 public:
  EmulatedPace(const CostModel& cost, RankHooks& inner);

  void compute_begins() override;  // a wait has ended: work goes on from now
  void compute_ends() override { inner_.compute_ends(); }
  void at_action(std::string_view what) override { inner_.at_action(what); }
  void linear_done(bool forward, Tokens tokens) override;
  void attention_done(bool forward, const std::vector<AttentionPart>& parts) override;

  // By how much the real work of this machine took longer than the device's would have, in all: what the emulation is
  // off by. 0 where the machine kept up.
  Seconds late() const { return late_; }
  Seconds worked() const { return worked_; }  // of the device

 private:
  using Clock = std::chrono::steady_clock;
  void busy_for(Seconds seconds);

  const CostModel& cost_;
  RankHooks& inner_;
  Clock::time_point since_;  // what came before is done
  Seconds late_ = 0;
  Seconds worked_ = 0;
};

}  // namespace ballast::cli
