#include "cli/simulated_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/size_option.h"

namespace ballast::cli {

namespace {

using nlohmann::ordered_json;

constexpr Seconds kGoodputHorizon = 54 * 86400.0;  // as long as the run whose failures Llama 3's paper reports
constexpr int kGoodputRuns = 4;

// Multiply-adds count two; attention counts the pairs that the mask leaves; backward is twice forward; what is
// recomputed does not count.
double model_flops(const RunSpec& run, const StepPlan& plan) {
  const ModelSpec& model = run.model;
  const double a_token = 2.0 * (static_cast<double>(model.num_layers) * static_cast<double>(model.layer_parameters()) +
                                static_cast<double>(model.hidden_dim) * model.vocab_size);
  double pairs = 0;
  for (const auto& pipeline : plan.micro_batches) {
    for (const MicroBatch& micro_batch : pipeline) {
      for (const Document& document : micro_batch.documents) {
        const auto length = static_cast<double>(document.length);
        pairs += length * (length + 1) / 2;
      }
    }
  }
  return 3 * (a_token * static_cast<double>(plan.num_tokens()) +
              4.0 * pairs * model.num_heads * model.head_dim * model.num_layers);
}

std::string memory_text(Bytes bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < (1 << 30) ? fmt::format("{:.0f} MiB", value / (1 << 20))
                           : fmt::format("{:.1f} GiB", value / (1 << 30));
}

template <class T>
double sum_of(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, T value) { return sum + static_cast<double>(value); });
}

}  // namespace

ClusterMesh SimulationSubject::mesh() const {
  return {.dims = run.parallel,
          .tp = run.tensor_parallel,
          .order = *parse_mesh_order(run.mapping),
          .routed = run.routing == "auto"};
}

GoodputSubject SimulationSubject::goodput() const {
  return {.step_seconds = {},
          .step_tokens = {},
          .gpus = gpus(),
          .checkpoint_bytes = checkpoint_bytes(run),
          .faults = run.faults,
          .storage = run.storage,
          .horizon = kGoodputHorizon,
          .seed = run.seed};
}

void SimulationFigures::add(const StepPlan& plan, const FastStep& step) {
  const StepTime& time = step.time;
  step_seconds_.push_back(time.step_seconds());
  step_tokens_.push_back(plan.num_tokens());
  flops_ += model_flops(subject_.run, plan);
  bubble_ += time.bubble_share;
  exposed_ += time.exposed_communication_share();
  imbalance_ += time.imbalance();
  events_ += step.events;
  for (const auto& [kind, seconds] : time.seconds_by_kind) seconds_by_kind_[kind] += seconds;
  if (steps() > 1) return;
  for (int pp = 0; pp < subject_.run.parallel.pp; ++pp) {
    const MemoryParts parts = memory_of_rank(subject_.run, plan.schedule, pp);
    if (subject_.cluster) {
      const Tokens longest = longest_micro_batch(subject_.run, plan.schedule, pp, subject_.cluster->memory_bytes);
      longest_micro_batch_ = pp == 0 ? longest : std::min(longest_micro_batch_, longest);
    }
    if (parts.total() > memory_.total()) {
      memory_ = parts;
      memory_rank_ = pp;
    }
  }
}

void SimulationFigures::play_failures() {
  if (subject_.run.faults.failures_per_gpu_day <= 0) return;
  GoodputSubject goodput = subject_.goodput();
  goodput.step_seconds = step_seconds_;
  goodput.step_tokens = step_tokens_;
  young_steps_ = young_interval_steps(goodput);
  std::vector<std::int64_t> intervals = intervals_to_try(goodput);
  if (const int every = subject_.run.training.checkpoint_every; every > 0) intervals = {every};
  for (const std::int64_t every : intervals) goodput_.push_back(simulate_goodput(goodput, every, kGoodputRuns));
}

ordered_json SimulationFigures::goodput_json() const {
  ordered_json intervals = ordered_json::array();
  for (const Goodput& g : goodput_) {
    intervals.push_back({{"checkpoint_every_steps", g.checkpoint_every},
                         {"goodput_share", g.share()},
                         {"tokens", g.tokens},
                         {"useful_seconds", g.useful},
                         {"loading_seconds", g.loading},
                         {"checkpoint_seconds", g.checkpoints},
                         {"lost_seconds", g.lost},
                         {"restart_seconds", g.restarts},
                         {"failures", g.failures}});
  }
  return {{"horizon_seconds", kGoodputHorizon},
          {"checkpoint_bytes", checkpoint_bytes(subject_.run)},
          {"checkpoint_seconds", checkpoint_seconds(subject_.goodput())},
          {"young_interval_steps", young_steps_},
          {"by_interval", std::move(intervals)}};
}

ordered_json SimulationFigures::to_json() const {
  const RunSpec& run = subject_.run;
  const auto count = static_cast<double>(steps());
  const Seconds seconds = sum_of(step_seconds_);
  const double tokens = sum_of(step_tokens_);
  const double flops_per_gpu = flops_ / seconds / subject_.gpus();
  ordered_json by_part;
  for (const auto& [name, bytes] : memory_.named()) by_part[name] = bytes;
  Seconds all = 0;
  for (const auto& [kind, of_kind] : seconds_by_kind_) all += of_kind;
  ordered_json shares;
  for (const auto& [kind, of_kind] : seconds_by_kind_) shares[to_string(kind)] = of_kind / all;
  ordered_json result{
      {"predicted_by", subject_.cost->name()},
      {"gpus", subject_.gpus()},
      {"degrees",
       {{"dp", run.parallel.dp}, {"pp", run.parallel.pp}, {"cp", run.parallel.cp}, {"tp", run.tensor_parallel}}},
      {"mapping", run.mapping},
      {"run",
       {{"model", to_string(run.model)},
        {"precision", to_string(run.training.precision)},
        {"window_tokens", run.packing.window},
        {"micro_batches", run.packing.micro_batches},
        {"packer", run.packing.packer},
        {"sharding", run.sharding},
        {"schedule", run.schedule.name},
        {"virtual_stages", run.schedule.virtual_stages},
        {"zero", run.zero},
        {"recompute", run.recompute},
        {"checkpoint_every_steps", run.training.checkpoint_every},
        {"failures_per_gpu_day", run.faults.failures_per_gpu_day}}},
      {"steps", steps()},
      {"step_seconds",
       {{"mean", seconds / count}, {"max", *std::max_element(step_seconds_.begin(), step_seconds_.end())}}},
      {"step_tokens_mean", tokens / count},
      {"tokens_per_second", tokens / seconds},
      {"tflops_per_gpu", flops_per_gpu / 1e12}};
  if (subject_.peak_flops_per_second > 0) result["mfu"] = flops_per_gpu / subject_.peak_flops_per_second;
  result.update({{"bubble_share", bubble_ / count},
                 {"exposed_communication_share", exposed_ / count},
                 {"compute", {{"max_over_mean", imbalance_ / count}}},
                 {"busy_share_by_kind", std::move(shares)},
                 {"peak_memory_bytes",
                  {{"max", memory_.total()}, {"pipeline_rank", memory_rank_}, {"by_part", std::move(by_part)}}}});
  if (subject_.cluster) {
    result["memory_headroom_bytes"] = subject_.cluster->memory_bytes - memory_.total();
    result["longest_micro_batch_tokens"] = longest_micro_batch_;
    result["fits"] = subject_.cluster->memory_bytes >= memory_.total();
  }
  if (!subject_.extrapolated.empty()) result["extrapolated"] = subject_.extrapolated;
  if (!goodput_.empty()) result["goodput"] = goodput_json();
  result["events"] = events_;
  result["simulation_seconds"] = simulation_seconds;
  return result;
}

std::string SimulationFigures::goodput_text() const {
  const auto best = std::max_element(goodput_.begin(), goodput_.end(),
                                     [](const Goodput& a, const Goodput& b) { return a.share() < b.share(); });
  std::string text = fmt::format(
      "  goodput       {:.1f}% of {:.0f} days with a checkpoint every {} steps (Young's rule: {:.0f}); {:.0f} "
      "failures\n",
      100 * best->share(), kGoodputHorizon / 86400, grouped(best->checkpoint_every), young_steps_, best->failures);
  text += "                every      goodput   lost   checkpoints   restarts   loading\n";
  for (const Goodput& g : goodput_) {
    text += fmt::format("                {:<9}  {:>6.2f}%  {:>4.1f}%       {:>6.2f}%     {:>5.1f}%    {:>5.2f}%\n",
                        grouped(g.checkpoint_every), 100 * g.share(), 100 * g.lost / kGoodputHorizon,
                        100 * g.checkpoints / kGoodputHorizon, 100 * g.restarts / kGoodputHorizon,
                        100 * g.loading / kGoodputHorizon);
  }
  return text;
}

std::string SimulationFigures::to_text() const {
  const ordered_json j = to_json();
  const RunSpec& run = subject_.run;
  const auto count = static_cast<double>(steps());
  const Seconds seconds = sum_of(step_seconds_);
  std::string text = fmt::format("{} GPUs: tp {} x {}; predicted by {}\n", grouped(subject_.gpus()),
                                 run.tensor_parallel, to_string(run.parallel), subject_.cost->name());
  text += fmt::format("  run           {}, {}, {} micro-batches of {} tokens, {}, {}; {}, zero {}, recompute {}\n",
                      run.mapping, to_string(run.training.precision), run.packing.micro_batches,
                      grouped(run.packing.window), run.packing.packer, run.sharding, run.schedule.name, run.zero,
                      run.recompute);
  text += fmt::format("  step          {:.3f} s on average, {:.3f} s at most, over {} steps of {} tokens\n",
                      seconds / count, j["step_seconds"]["max"].get<double>(), steps(),
                      grouped(static_cast<Tokens>(sum_of(step_tokens_) / count)));
  text += fmt::format("  speed         {} tokens a second, {:.3g} TFLOPS a GPU{}\n",
                      grouped(static_cast<Tokens>(sum_of(step_tokens_) / seconds)), j["tflops_per_gpu"].get<double>(),
                      j.contains("mfu") ? fmt::format(", MFU {:.1f}%", 100 * j["mfu"].get<double>()) : "");
  text += fmt::format("  ranks         {:.3f} slowest over mean work; {:.1f}% bubble, {:.1f}% exposed communication\n",
                      imbalance_ / count, 100 * bubble_ / count, 100 * exposed_ / count);
  std::string parts;
  for (const auto& [name, bytes] : memory_.named()) {
    if (bytes > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, memory_text(bytes));
  }
  text +=
      fmt::format("  memory        {} on pipeline rank {} ({})\n", memory_text(memory_.total()), memory_rank_, parts);
  if (subject_.cluster) {
    const Bytes headroom = subject_.cluster->memory_bytes - memory_.total();
    text += fmt::format("                {}\n", headroom >= 0
                                                    ? fmt::format("fits, {} to spare; max_tokens of up to {} would fit",
                                                                  memory_text(headroom), grouped(longest_micro_batch_))
                                                    : fmt::format("DOES NOT FIT: {} too much", memory_text(-headroom)));
  }
  for (std::size_t i = 0; i < subject_.extrapolated.size(); ++i) {
    text += fmt::format("  {:<13} {}\n", i == 0 ? "not measured" : "", subject_.extrapolated[i]);
  }
  if (!goodput_.empty()) text += goodput_text();
  return text + fmt::format("  simulated     {} events in {:.2f} s\n", grouped(events_), simulation_seconds);
}

}  // namespace ballast::cli
