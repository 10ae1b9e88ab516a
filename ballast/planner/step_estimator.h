// Predicts the steps of one run under many choices: the same steps that StepStream plans and predicts, with everything
// shared that choices have in common (packed steps, shards, orders, schedules). One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ballast/cost/cluster_cost.h"
#include "ballast/simulate/fast_step.h"
#include "ballast/spec/run_choice.h"

namespace ballast {

// The run as stated, but for what is chosen.
struct RunSubject {
  RunSpec run;
  ClusterSpec cluster;
  DeviceProfile device;
  std::vector<Tokens> lengths;  // of the documents, in the corpus's order
  std::vector<int> domains;
};

ClusterMesh mesh_of(const RunChoice& choice);

struct StepEstimate {
  Seconds seconds = 0;  // of a step
  Tokens tokens = 0;
  double bubble_share = 0;
  double exposed_communication_share = 0;
  double imbalance = 1;  // slowest rank over mean work
};

class StepEstimator {
 public:
  // `skip`: first steps that are packed and left out, in which packers that hold documents back fill up.
  StepEstimator(const RunSubject& subject, int skip);
  ~StepEstimator();

  // The first `steps` steps. REQUIRES: with_choice(run, choice) has no violations. Throws UserError as make_packer and
  // derive_profile do, and where the data ends before.
  std::vector<StepEstimate> estimate(const RunChoice& choice, int steps);

  // Seconds of the same steps in sum that no schedule of this choice can beat: the most loaded pipeline rank at work
  // without a pause, after the stages before it have run the forward of one micro-batch and before they have run the
  // backward of one. Exchanges within a layer count, those between stages and in the background do not.
  Seconds lower_bound(const RunChoice& choice, int steps);

  // Of these steps.
  double tokens(const RunChoice& choice, int steps);

  // Lowered, of one pipeline under this choice.
  const Schedule& schedule(const RunChoice& choice);

 private:
  struct Packed;  // steps of one packer, window and tp
  struct Shards;  // their micro-batches' shares, of one cp degree and strategy
  struct KvExchanges;

  const DeviceCost& device_cost(int tp);
  std::unique_ptr<CostModel> cluster_cost(const RunChoice& choice);
  Packed& packed(const RunChoice& choice, int steps);
  Shards& shards(const RunChoice& choice, int steps);
  KvExchanges& kv_exchanges(const RunChoice& choice, int steps);
  // [pipeline][place]: micro-batch of the step.
  const std::vector<std::vector<std::size_t>>& order(const RunChoice& choice, int step);

  const RunSubject& subject_;
  const int skip_;
  std::map<int, std::shared_ptr<const DeviceCost>> device_costs_;  // by tp
  std::map<std::string, std::unique_ptr<Packed>> packed_;
  std::map<std::string, std::unique_ptr<Shards>> shards_;
  std::map<std::string, std::unique_ptr<KvExchanges>> kv_exchanges_;
  std::map<std::string, Schedule> schedules_;
  std::map<std::string, std::vector<std::vector<std::size_t>>> orders_;
};

}  // namespace ballast
