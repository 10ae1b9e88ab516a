// ballast trace RUN: a run's timeline as a Chrome trace.
#include <fmt/format.h>

#include <memory>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/chrome_trace.h"
#include "cli/run_selection.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

struct TraceOptions {
  std::string run;
  std::string out;
  std::string source;
  std::optional<int> rank;
  bool quiet = false;
};

const Timeline& chosen_timeline(const RunFolder& run, const std::string& source) {
  std::vector<std::string> sources;
  for (const Timeline& timeline : run.timelines) {
    if (source.empty() || timeline.source == source) return timeline;
    sources.push_back(timeline.source);
  }
  if (sources.empty()) throw UserError(run.path.string() + ": holds no timeline");
  const std::string nearest = nearest_name(source, sources);
  throw UserError(run.path.string() + ": --source " + source + ": the run has " + join(sources) +
                  (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

void trace(const TraceOptions& options) {
  const RunFolder run = read_run_folder(options.run, RunParts::everything);
  const Timeline& timeline = chosen_timeline(run, options.source);
  AtomicFile file(options.out);
  write_chrome_trace(timeline, {.rank = options.rank, .device = run.summary.device},
                     [&](std::string_view text) { file.write(text); });
  file.commit();
  if (options.quiet) return;
  fmt::print("{}: {} spans ({}); open it in https://ui.perfetto.dev or chrome://tracing\n", options.out,
             timeline.spans.size(), timeline.source);
}

}  // namespace

void add_trace(CLI::App& app) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb = app.add_subcommand("trace", "Write a run's timeline as a Chrome trace for Perfetto");
  verb->add_option("run", options->run, "Run folder")->required();
  verb->add_option("--out", options->out, "The JSON file to write")->required();
  verb->add_option("--source", options->source, "measured, predicted or replayed; the first of these that is there");
  verb->add_option("--rank", options->rank, "Only this rank, for tools that read one file a rank");
  verb->add_flag("--quiet", options->quiet, "Print nothing");
  verb->footer("Example:\n  ballast trace runs/balanced --out balanced.trace.json");
  verb->callback([options] { trace(*options); });
}

}  // namespace ballast::cli
