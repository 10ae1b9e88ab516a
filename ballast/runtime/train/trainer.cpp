#include "ballast/runtime/train/trainer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "ballast/runtime/profiler/work.h"
#include "ballast/runtime/train/allocator.h"
#include "ballast/runtime/train/lr_schedule.h"

namespace ballast {

namespace {

// "12[0,4096), 7[0,20)* and 3 more"
std::string some_documents(const MicroBatch& micro_batch) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> names;
  for (const Document& document : micro_batch.documents) {
    if (names.size() == kShown) break;
    names.push_back(to_string(document));
  }
  const std::size_t more = micro_batch.documents.size() - names.size();
  return join(names) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

Trainer::Trainer(PipelineStages& model, AdamW& optimizer, Mesh& mesh, SpanRecorder& recorder, RankHooks& hooks,
                 TokenReader read, TrainingSpec training, std::function<bool()> stop_requested,
                 std::function<void(std::int64_t, const std::string&)> save)
    : model_(model),
      optimizer_(optimizer),
      mesh_(mesh),
      recorder_(recorder),
      hooks_(hooks),
      executor_(model, mesh, recorder, hooks, std::move(read)),
      training_(training),
      stop_requested_(std::move(stop_requested)),
      save_(std::move(save)) {}

TrainOutcome Trainer::train(StepSource& source, std::int64_t first_step, TrainObserver& observer) {
  TrainOutcome outcome{.next_step = first_step};
  std::string state_after;  // of the last step done
  std::int64_t saved = first_step;

  const auto next_plan = [&]() -> std::optional<SourcedStep> {
    if (outcome.next_step >= training_.steps) return std::nullopt;
    std::optional<SourcedStep> next = source.next();
    outcome.data_ended = !next.has_value();
    if (next) require_valid(next->plan.violations(), fmt::format("plan of step {}", next->plan.step));
    return next;
  };

  recorder_.begin_step(first_step);
  std::optional<SourcedStep> current = next_plan();
  outcome.stopped = agree(current ? &*current : nullptr, 0, 0).stop;
  recorder_.take();
  Seconds began = recorder_.now();

  while (current && !outcome.stopped) {
    const StepPlan& plan = current->plan;
    const std::string where = fmt::format("step {}: ", plan.step);
    recorder_.begin_step(plan.step);
    reset_peak_tensor_bytes();
    const StepLoss mine = executor_.run(plan);

    // Loss and squared gradient norm in one sum over all ranks; parameters that several ranks hold count once.
    at::Tensor sums = at::tensor({mine.sum, model_.parameters().squared_gradient_norm()}, at::kDouble);
    {
      hooks_.at_action(where + "REDUCE_NORM");
      if (mesh_.at.dp != 0 || mesh_.at.cp != 0) sums[1] = 0.0;
      const SpanScope scope(
          recorder_, {.kind = SpanKind::REDUCE_NORM, .bytes = static_cast<Bytes>(sums.nbytes()), .axis = Axis::world});
      mesh_.world->all_reduce(sums);
    }
    StepResult result{.step = plan.step};
    result.loss = sums[0].item<double>();
    result.grad_norm = std::sqrt(sums[1].item<double>());
    result.lr = learning_rate(training_, plan.step);
    refuse_non_finite(plan, mine, result.loss, result.grad_norm);
    {
      hooks_.at_action(where + "OPTIMIZER");
      const SpanScope scope(recorder_, {.kind = SpanKind::OPTIMIZER});
      optimizer_.step(result.lr, clip_scale(result.grad_norm, training_.clip_norm));
      model_.parameters().zero_gradients();
    }
    ++outcome.next_step;
    state_after = current->state_after;

    const Seconds asked = recorder_.now();
    std::optional<SourcedStep> next = next_plan();
    result.stall_seconds = recorder_.now() - asked;

    const std::vector<Span> so_far = recorder_.take();
    const Work work = work_of(so_far);
    const Agreement agreement = agree(next ? &*next : nullptr, work.work_seconds, work.wait_seconds);
    outcome.stopped = agreement.stop;
    result.work_seconds = agreement.work_seconds;
    result.wait_seconds = agreement.wait_seconds;
    result.peak_memory_bytes = agreement.peak_memory_bytes;

    const Seconds ended = recorder_.now();
    result.step_seconds = ended - std::exchange(began, ended);
    std::vector<Span> spans = so_far;
    for (const Span& span : recorder_.take()) spans.push_back(span);
    observer.spans(plan.step, spans);
    result.recording_seconds = recorder_.now() - ended;
    observer.step_done(result, *current);

    if (training_.checkpoint_every > 0 && outcome.next_step % training_.checkpoint_every == 0) {
      hooks_.at_action(where + "CHECKPOINT");
      save_(outcome.next_step, state_after);
      saved = outcome.next_step;
      recorder_.take();
      began = recorder_.now();  // a checkpoint is no part of the next step
    }
    current = std::move(next);
  }
  if (saved < outcome.next_step) {
    hooks_.at_action(fmt::format("step {}: CHECKPOINT", outcome.next_step - 1));
    save_(outcome.next_step, state_after);
  }
  return outcome;
}

Trainer::Agreement Trainer::agree(const SourcedStep* next, Seconds work, Seconds wait) {
  Communicator& world = *mesh_.world;
  const std::uint64_t digest = next == nullptr ? 0 : next->plan.digest();
  const auto high = static_cast<double>(digest >> 32);
  const auto low = static_cast<double>(digest & 0xffffffffU);

  // One maximum over all ranks carries it all: a value and its negative agree only where every rank has the same, and
  // figures of one rank are 0 on the others.
  constexpr std::int64_t kFixed = 6;
  at::Tensor exchanged = at::zeros({kFixed + 2 * world.size()}, at::kDouble);
  auto* slot = exchanged.mutable_data_ptr<double>();
  slot[0] = high;
  slot[1] = low;
  slot[2] = -high;
  slot[3] = -low;
  slot[4] = stop_requested_() ? 1 : 0;
  slot[5] = static_cast<double>(peak_tensor_bytes());
  slot[kFixed + world.rank()] = work;
  slot[kFixed + world.size() + world.rank()] = wait;
  {
    hooks_.at_action("agree on the next plan");
    const SpanScope scope(
        recorder_, {.kind = SpanKind::CONTROL, .bytes = static_cast<Bytes>(exchanged.nbytes()), .axis = Axis::world});
    world.all_reduce(exchanged, ReduceOp::max);
  }
  if (slot[0] != -slot[2] || slot[1] != -slot[3]) {
    const at::Tensor digests =
        world.all_gather_rows(at::full({1}, static_cast<std::int64_t>(digest), at::kLong),
                              std::vector<std::int64_t>(static_cast<std::size_t>(world.size()), 1));
    std::map<std::uint64_t, std::vector<std::string>> ranks_of;
    for (int rank = 0; rank < world.size(); ++rank) {
      ranks_of[static_cast<std::uint64_t>(digests[rank].item<std::int64_t>())].push_back(std::to_string(rank));
    }
    std::vector<std::pair<std::size_t, std::string>> groups;  // the fewest ranks first: they are the odd ones
    for (const auto& [theirs, ranks] : ranks_of) {
      groups.emplace_back(ranks.size(),
                          fmt::format("rank{} {}: {:016x}", ranks.size() > 1 ? "s" : "", join(ranks), theirs));
    }
    std::sort(groups.begin(), groups.end());
    std::string text = "ranks have different plans for the next step";
    for (const auto& [count, group] : groups) text += "; " + group;
    throw RunError(text + "; do all ranks read the same corpus, profile and run file?");
  }
  Agreement agreement{.stop = slot[4] > 0, .peak_memory_bytes = static_cast<Bytes>(slot[5])};
  agreement.work_seconds.assign(slot + kFixed, slot + kFixed + world.size());
  agreement.wait_seconds.assign(slot + kFixed + world.size(), slot + kFixed + 2 * world.size());
  return agreement;
}

void Trainer::refuse_non_finite(const StepPlan& plan, const StepLoss& mine, double loss, double grad_norm) {
  if (std::isfinite(loss) && std::isfinite(grad_norm)) return;
  Communicator& world = *mesh_.world;
  at::Tensor bad = at::zeros({world.size()}, at::kLong);  // by rank: its first bad micro-batch, counted from 1
  if (!mine.micro_batches_not_finite.empty()) bad[world.rank()] = mine.micro_batches_not_finite.front() + 1;
  world.all_reduce(bad, ReduceOp::max);

  std::string text = fmt::format("step {}: the {} is {}", plan.step, std::isfinite(loss) ? "gradient norm" : "loss",
                                 std::isfinite(loss) ? grad_norm : loss);
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto micro_batch = bad[rank].item<std::int64_t>() - 1;
    if (micro_batch < 0) continue;
    const RankCoordinate at = plan.dims.coordinate(rank);
    const MicroBatch& documents =
        plan.micro_batches[static_cast<std::size_t>(at.dp)][static_cast<std::size_t>(micro_batch)];
    text += fmt::format("; rank {} (dp {}, pp {}, cp {}), micro-batch {}, documents {}", rank, at.dp, at.pp, at.cp,
                        micro_batch, some_documents(documents));
    break;
  }
  throw RunError(text + "; stopped before the optimizer step, the last checkpoint holds");
}

}  // namespace ballast
