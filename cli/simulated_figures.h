// The figures of a simulated run: gathered step by step, as JSON and as text.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ballast/cost/cluster_cost.h"
#include "ballast/cost/memory.h"
#include "ballast/io/lengths.h"
#include "ballast/simulate/fast_step.h"
#include "ballast/simulate/goodput.h"
#include "ballast/spec/run_spec.h"

namespace ballast::cli {

struct SimulationSubject {
  RunSpec run;
  DocumentLengths documents;
  std::unique_ptr<CostModel> cost;
  std::optional<ClusterSpec> cluster;
  double peak_flops_per_second = 0;            // of a GPU; 0: not known
  std::vector<std::string> extrapolated = {};  // shapes that the device was not measured at

  ClusterMesh mesh() const;
  int gpus() const { return run.parallel.world_size() * run.tensor_parallel; }
  // Of this run, with no steps yet.
  GoodputSubject goodput() const;
};

class SimulationFigures {
 public:
  explicit SimulationFigures(const SimulationSubject& subject) : subject_(subject) {}

  void add(const StepPlan& plan, const FastStep& step);
  std::int64_t steps() const { return static_cast<std::int64_t>(step_seconds_.size()); }
  // What failures and checkpoints leave of it: at the run's interval where it has one, else at several. Does nothing
  // where nothing fails.
  void play_failures();

  Seconds simulation_seconds = 0;

  nlohmann::ordered_json to_json() const;
  std::string to_text() const;

 private:
  nlohmann::ordered_json goodput_json() const;
  std::string goodput_text() const;

  const SimulationSubject& subject_;
  std::vector<Seconds> step_seconds_;
  std::vector<Tokens> step_tokens_;
  double flops_ = 0;
  double bubble_ = 0;  // sums over steps
  double exposed_ = 0;
  double imbalance_ = 0;
  std::int64_t events_ = 0;
  MemoryParts memory_;
  int memory_rank_ = 0;             // pipeline rank that holds most
  Tokens longest_micro_batch_ = 0;  // that fits on every rank; where the cluster is known
  std::map<SpanKind, Seconds> seconds_by_kind_;
  std::vector<Goodput> goodput_;  // by interval, rising
  double young_steps_ = 0;
};

}  // namespace ballast::cli
