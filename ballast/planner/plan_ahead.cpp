#include "ballast/planner/plan_ahead.h"

#include <utility>

namespace ballast {

PlanAhead::PlanAhead(std::unique_ptr<StepStream> stream, int steps_ahead)
    : steps_ahead_(static_cast<std::size_t>(steps_ahead)),
      stream_(std::move(stream)),
      returned_state_(stream_->state()),
      thread_([this] { work(); }) {}

PlanAhead::~PlanAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PlanAhead::work() {
  for (bool more = true; more;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || planned_.size() < steps_ahead_; });
      if (stopping_) return;
    }
    Planned planned;
    try {
      planned.step = stream_->next();
      planned.state_after = stream_->state();
      more = planned.step.has_value();
    } catch (...) {
      planned.error = std::current_exception();
      more = false;
    }
    {
      const std::lock_guard lock(mutex_);
      planned_.push_back(std::move(planned));
    }
    changed_.notify_all();
  }
}

std::optional<PlannedStep> PlanAhead::next() {
  if (ended_) return std::nullopt;
  Planned planned;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !planned_.empty(); });
    planned = std::move(planned_.front());
    planned_.pop_front();
  }
  changed_.notify_all();
  ended_ = !planned.step.has_value();
  if (planned.error) std::rethrow_exception(planned.error);
  if (planned.step) returned_state_ = std::move(planned.state_after);
  return std::move(planned.step);
}

}  // namespace ballast
