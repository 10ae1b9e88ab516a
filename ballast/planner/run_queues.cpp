#include "ballast/planner/run_queues.h"

#include <optional>
#include <vector>

namespace ballast {

void tune_run_queues(RunSpec& run, const CostModel& cost, DocumentStream documents, std::int64_t most_steps) {
  const Tokens enough = run.packing.window * run.packing.micro_batches * (most_steps + 1);
  std::vector<Tokens> sample;
  Tokens tokens = 0;
  while (tokens < enough && static_cast<std::int64_t>(sample.size()) < documents.num_documents()) {
    const std::optional<Document> document = documents.next();
    if (!document) break;
    sample.push_back(document->length);
    tokens += document->length;
  }
  run.packing.queues = tune_queues(run.packing, cost, sample).chosen.queues;
  run.packing.tune_queues = false;
}

}  // namespace ballast
