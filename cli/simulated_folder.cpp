#include "cli/simulated_folder.h"

#include <cmath>
#include <limits>

#include "ballast/io/atomic_file.h"
#include "ballast/io/plan_json.h"
#include "ballast/io/run_record_json.h"
#include "ballast/io/run_toml.h"
#include "cli/run_summary.h"

namespace ballast::cli {

namespace {

namespace fs = std::filesystem;

// A timeline of more is no use to anybody: 100 bytes a span.
constexpr std::size_t kMostSpans = 2'000'000;

const fs::path& made(const fs::path& folder) {
  if (fs::exists(folder / "metrics.jsonl")) {
    throw UserError("--out " + folder.string() + ": holds a run already; name another folder");
  }
  fs::create_directories(folder / "timeline");
  return folder;
}

}  // namespace

SimulatedFolder::SimulatedFolder(const fs::path& folder, const SimulationSubject& subject)
    : folder_(made(folder)),
      subject_(subject),
      plans_(folder / "plan.jsonl", 0),
      metrics_(folder / "metrics.jsonl", 0),
      predicted_(folder / "timeline" / "predicted.jsonl", "predicted", subject.run.parallel),
      placement_(folder, subject.cost.get(), 0) {
  write_file_atomically(folder / "run.toml", to_toml(subject.run));
  CorpusRecord corpus{.path = subject.run.lengths.empty() ? subject.run.corpus : subject.run.lengths,
                      .domains = subject.documents.domain_names,
                      .documents = static_cast<std::int64_t>(subject.documents.lengths.size())};
  for (const Tokens length : subject.documents.lengths) corpus.tokens += length;
  write_file_atomically(folder / "corpus.json", to_json(corpus) + "\n");
}

void SimulatedFolder::add(const PlannedStep& step) {
  StepMetrics metrics;
  metrics.step = step.plan.step;
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::quiet_NaN();
  metrics.tokens = step.plan.num_tokens();
  metrics.labels = step.plan.num_labels();
  metrics.simulated = true;
  metrics.step_seconds = step.predicted_seconds;
  metrics.predicted_step_seconds = step.predicted_seconds;
  metrics.tokens_per_second = static_cast<double>(metrics.tokens) / step.predicted_seconds;
  metrics.imbalance_micro_batch = step.imbalance_micro_batch;
  metrics.imbalance_cp = step.imbalance_cp;
  metrics.planning_seconds = step.planning_seconds;
  plans_.append(to_json(step.plan));
  metrics_.append(to_json(metrics));
  placement_.add(step.plan);
  const std::size_t spans = step.predicted.spans.size();
  if (spans_ > 0 && spans_ + spans > kMostSpans) {
    ++steps_without_timeline_;
    return;
  }
  spans_ += spans;
  predicted_.append(step.predicted.spans);
}

void SimulatedFolder::finish(const std::string& command, const PackerState& state) {
  RunSummary summary = summarise_run(folder_, subject_.run, command, state, subject_.documents.domain_names);
  summary.device = subject_.cost->name();
  summary.cores = 0;
  write_file_atomically(folder_ / "summary.json", to_json(summary) + "\n");
}

}  // namespace ballast::cli
