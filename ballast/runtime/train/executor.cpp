#include "ballast/runtime/train/executor.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "ballast/runtime/attention/engine.h"

namespace ballast {

namespace {

// A tensor that crosses between stages: an activation into `stage` (F) or a gradient into `stage` (B).
using Crossing = std::tuple<ActionKind, int, int>;  // F or B, receiving stage, micro-batch

struct Arrival {
  at::Tensor tensor;
  std::unique_ptr<Transfer> transfer;  // empty where it came from a stage of this rank
};

struct InFlight {
  at::Tensor input;   // leaf of the stage's graph; its gradient goes to the stage before
  at::Tensor output;  // of the last stage: its share of the loss
};

constexpr int kReceivesPostedAhead = 2;

SpanKind span_kind(ActionKind kind) {
  switch (kind) {
    case ActionKind::F:
      return SpanKind::F;
    case ActionKind::B:
      return SpanKind::B;
    case ActionKind::SEND_F:
      return SpanKind::SEND_F;
    case ActionKind::RECV_F:
      return SpanKind::RECV_F;
    case ActionKind::SEND_B:
      return SpanKind::SEND_B;
    case ActionKind::RECV_B:
      return SpanKind::RECV_B;
  }
  return SpanKind::F;
}

// One step on one rank: what lives only while it runs.
class StepRun {
 public:
  StepRun(const StepPlan& plan, PipelineStages& model, Mesh& mesh, SpanRecorder& recorder, RankHooks& hooks,
          const TokenReader& read)
      : plan_(plan),
        model_(model),
        mesh_(mesh),
        recorder_(recorder),
        hooks_(hooks),
        me_(mesh.at),
        micro_batches_(plan.micro_batches[static_cast<std::size_t>(me_.dp)]),
        shard_plans_(plan.shard_plans[static_cast<std::size_t>(me_.dp)]),
        actions_(plan.schedule.ranks[static_cast<std::size_t>(me_.pp)]),
        num_labels_(static_cast<double>(std::max<Tokens>(plan.num_labels(), 1))) {
    hooks_.at_action("step " + std::to_string(plan.step) + ": LOAD");
    const SpanScope load(recorder_, {.kind = SpanKind::LOAD});
    for (std::size_t m = 0; m < micro_batches_.size(); ++m) {
      data_.push_back(load_micro_batch(micro_batches_[m], shard_plans_[m], me_.cp, read));
    }
  }

  StepLoss run() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      post_receives(i);
      const Action& action = actions_[i];
      hooks_.at_action("step " + std::to_string(plan_.step) + ": " + to_string(action));
      Span span{.kind = span_kind(action.kind), .stage = action.stage, .micro_batch = action.micro_batch};
      if (const int pp = peer(action); pp >= 0) {
        span.peer = plan_.dims.rank({.dp = me_.dp, .pp = pp, .cp = me_.cp});
        span.bytes = crossing_bytes(action.micro_batch);
      }
      const SpanScope scope(recorder_, span);
      switch (action.kind) {
        case ActionKind::F:
          forward(action);
          break;
        case ActionKind::B:
          backward(action);
          break;
        case ActionKind::SEND_F:
          send(action, in_flight_.at({action.stage, action.micro_batch}).output.detach());
          break;
        case ActionKind::SEND_B:
          send(action, input_gradients_.at({action.stage, action.micro_batch}));
          break;
        case ActionKind::RECV_F:
        case ActionKind::RECV_B:
          arrivals_.at(crossing_into(action)).transfer->wait();
          break;
      }
    }
    BALLAST_ASSERT(in_flight_.empty(), "a micro-batch went forward and not back");
    return std::move(loss_);
  }

  void finish_sends() {
    for (auto& [tensor, transfer] : sends_) transfer->wait();
    sends_.clear();
  }

 private:
  bool is_here(int stage) const { return plan_.schedule.rank_of_stage(stage) == me_.pp; }
  bool is_last(int stage) const { return stage == plan_.schedule.num_stages() - 1; }

  // The pipeline rank at the other end of a send or receive; -1 for a computation.
  int peer(const Action& action) const {
    int stage = -1;
    switch (action.kind) {
      case ActionKind::SEND_F:
        stage = action.stage + 1;
        break;
      case ActionKind::RECV_F:
        stage = action.stage - 1;
        break;
      case ActionKind::SEND_B:
        stage = action.stage - 1;
        break;
      case ActionKind::RECV_B:
        stage = action.stage + 1;
        break;
      default:
        return -1;
    }
    return plan_.schedule.rank_of_stage(stage);
  }

  static Crossing crossing_into(const Action& receive) {
    return {receive.kind == ActionKind::RECV_F ? ActionKind::F : ActionKind::B, receive.stage, receive.micro_batch};
  }

  // Both ends derive the same tag from the crossing; tags of one step are all different.
  std::uint32_t tag(const Crossing& crossing) const {
    const auto& [kind, stage, micro_batch] = crossing;
    const int direction = kind == ActionKind::F ? 0 : 1;
    return static_cast<std::uint32_t>(
        (direction * plan_.schedule.num_stages() + stage) * plan_.schedule.num_micro_batches + micro_batch);
  }

  std::vector<std::int64_t> crossing_shape(int micro_batch) const {
    return {shard_plans_[static_cast<std::size_t>(micro_batch)].linear_tokens(me_.cp), model_.hidden_dim()};
  }

  Bytes crossing_bytes(int micro_batch) const {
    const auto shape = crossing_shape(micro_batch);
    return shape[0] * shape[1] * static_cast<Bytes>(c10::elementSize(model_.activation_type()));
  }

  void post_receives(std::size_t from) {
    int ahead = 0;
    for (std::size_t i = from; i < actions_.size() && ahead < kReceivesPostedAhead; ++i) {
      const Action& action = actions_[i];
      if (action.kind != ActionKind::RECV_F && action.kind != ActionKind::RECV_B) continue;
      ++ahead;
      if (i < next_receive_) continue;
      next_receive_ = i + 1;
      const Crossing crossing = crossing_into(action);
      at::Tensor tensor = at::empty(crossing_shape(action.micro_batch), model_.activation_type());
      auto transfer = mesh_.pp->receive(tensor, peer(action), tag(crossing));
      arrivals_.emplace(crossing, Arrival{std::move(tensor), std::move(transfer)});
    }
  }

  void send(const Action& action, const at::Tensor& tensor) {
    const bool forwards = action.kind == ActionKind::SEND_F;
    const Crossing crossing{forwards ? ActionKind::F : ActionKind::B, action.stage + (forwards ? 1 : -1),
                            action.micro_batch};
    const at::Tensor contiguous = tensor.contiguous();
    sends_.emplace_back(contiguous, mesh_.pp->send(contiguous, peer(action), tag(crossing)));
    if (!forwards) input_gradients_.erase({action.stage, action.micro_batch});
  }

  at::Tensor take_arrival(const Crossing& crossing) {
    const auto found = arrivals_.find(crossing);
    BALLAST_ASSERT(found != arrivals_.end(), "a stage runs before its input has come");
    at::Tensor tensor = std::move(found->second.tensor);
    arrivals_.erase(found);
    return tensor;
  }

  void forward(const Action& action) {
    const auto m = static_cast<std::size_t>(action.micro_batch);
    const MicroBatchData& data = data_[m];
    const ContextAttention attention(shard_plans_[m], {*mesh_.cp, recorder_, hooks_, action.stage, action.micro_batch});
    InFlight flight;
    flight.input = action.stage == 0 ? data.tokens_T
                                     : take_arrival({ActionKind::F, action.stage, action.micro_batch}).requires_grad_();
    const Stage& stage = model_.stage(action.stage);
    flight.output = stage.forward(flight.input, data.positions_T, attention);
    if (is_last(action.stage)) {
      flight.output = stage.loss(flight.output, data.labels_T) / num_labels_;
      const auto value = flight.output.item<double>();
      loss_.sum += value;
      if (!std::isfinite(value)) loss_.micro_batches_not_finite.push_back(action.micro_batch);
    } else if (is_here(action.stage + 1)) {
      arrivals_.emplace(Crossing{ActionKind::F, action.stage + 1, action.micro_batch},
                        Arrival{flight.output.detach(), nullptr});
    }
    in_flight_.emplace(std::pair{action.stage, action.micro_batch}, std::move(flight));
  }

  void backward(const Action& action) {
    const std::pair key{action.stage, action.micro_batch};
    InFlight flight = std::move(in_flight_.at(key));
    in_flight_.erase(key);
    std::vector<at::Tensor> gradient;
    if (!is_last(action.stage)) gradient.push_back(take_arrival({ActionKind::B, action.stage, action.micro_batch}));
    torch::autograd::backward({flight.output}, gradient);
    if (action.stage == 0) return;
    at::Tensor input_gradient = flight.input.grad();
    if (is_here(action.stage - 1)) {
      arrivals_.emplace(Crossing{ActionKind::B, action.stage - 1, action.micro_batch},
                        Arrival{std::move(input_gradient), nullptr});
    } else {
      input_gradients_.emplace(key, std::move(input_gradient));
    }
  }

  const StepPlan& plan_;
  PipelineStages& model_;
  Mesh& mesh_;
  SpanRecorder& recorder_;
  RankHooks& hooks_;
  const RankCoordinate me_;
  const std::vector<MicroBatch>& micro_batches_;
  const std::vector<ShardPlan>& shard_plans_;
  const std::vector<Action>& actions_;
  const double num_labels_;

  std::vector<MicroBatchData> data_;                           // by micro-batch
  std::map<std::pair<int, int>, InFlight> in_flight_;          // (stage, micro-batch) between its F and its B
  std::map<std::pair<int, int>, at::Tensor> input_gradients_;  // between B and SEND_B
  std::map<Crossing, Arrival> arrivals_;
  std::vector<std::pair<at::Tensor, std::unique_ptr<Transfer>>> sends_;
  std::size_t next_receive_ = 0;  // actions before it have their receives posted
  StepLoss loss_;
};

}  // namespace

Executor::Executor(PipelineStages& model, Mesh& mesh, SpanRecorder& recorder, RankHooks& hooks, TokenReader read)
    : model_(model), mesh_(mesh), recorder_(recorder), hooks_(hooks), read_(std::move(read)) {}

StepLoss Executor::run(const StepPlan& plan) {
  StepRun step(plan, model_, mesh_, recorder_, hooks_, read_);
  StepLoss loss = step.run();

  const std::string where = "step " + std::to_string(plan.step) + ": ";
  for (const Parameter& parameter : model_.parameters().parameters()) {
    if (!parameter.tied) continue;
    hooks_.at_action(where + "REDUCE_TIED");
    const SpanScope scope(
        recorder_,
        {.kind = SpanKind::REDUCE_TIED, .bytes = static_cast<Bytes>(parameter.gradient.nbytes()), .axis = Axis::tied});
    mesh_.tied->all_reduce(parameter.gradient);
  }
  {
    hooks_.at_action(where + "REDUCE_GRAD");
    const at::Tensor gradients = model_.parameters().gradients();
    const SpanScope scope(
        recorder_,
        {.kind = SpanKind::REDUCE_GRAD, .bytes = static_cast<Bytes>(gradients.nbytes()), .axis = Axis::dp_cp});
    mesh_.dp_cp->all_reduce(gradients);
    step.finish_sends();  // their receivers have them by now or soon; the time is communication, not work
  }
  return loss;
}

}  // namespace ballast
