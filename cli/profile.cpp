// ballast profile: what this machine does with a model, measured
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/corpus.h"
#include "ballast/io/profile_json.h"
#include "ballast/io/run_toml.h"
#include "ballast/runtime/launch/cores.h"
#include "ballast/runtime/microbenchmarks/measure.h"
#include "ballast/runtime/profiler/profile_key.h"
#include "ballast/runtime/train/allocator.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

struct ProfileOptions {
  std::string out;
  std::string run;
  std::vector<std::string> overrides;
  std::string model = "tiny";
  std::string precision = "float32";
  int threads = 1;
  bool if_needed = false;
  bool json = false;
  bool quiet = false;
};

Precision precision_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Precision precision : {Precision::float64, Precision::float32, Precision::bfloat16}) {
    names.push_back(to_string(precision));
    if (name == names.back()) return precision;
  }
  const std::string near = nearest_name(name, names);
  throw UserError(fmt::format("--precision {}: must be one of {}{}", name, join(names),
                              near.empty() ? "" : "; did you mean " + near + "?"));
}

// Model, precision and threads as the run has them, so that its profile has the run's key.
MeasureOptions options_of_run(const ProfileOptions& options) {
  RunSpec spec = read_run_toml(options.run, options.overrides);
  if (spec.model.vocab_size == 0) spec.model.vocab_size = static_cast<int>(Corpus(spec.corpus).summary().vocab_size);
  require_valid(spec.violations(), options.run);
  MeasureOptions measure;
  measure.model = spec.model;
  measure.precision = spec.training.precision;
  measure.threads = share_cores(allowed_cores(), 0, spec.parallel.world_size(), spec.launch).threads;
  measure.longest_document = spec.packing.cap();
  return measure;
}

MeasureOptions options_of_flags(const ProfileOptions& options) {
  const auto model = model_preset(options.model);
  if (!model) {
    const std::string near = nearest_name(options.model, model_preset_names());
    throw UserError(fmt::format("--model {}: must be one of {}{}", options.model, join(model_preset_names()),
                                near.empty() ? "" : "; did you mean " + near + "?"));
  }
  if (options.threads < 1) throw UserError(fmt::format("--threads {}: must be 1 or more", options.threads));
  MeasureOptions measure;
  measure.model = *model;
  measure.precision = precision_named(options.precision);
  measure.threads = options.threads;
  return measure;
}

std::string date_of_today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

void print_points(const HardwareProfile& profile) {
  fmt::print("{}, {}, {}\n{}\n\n", profile.key.device, profile.key.kernel_build, profile.key.precision,
             profile.key.mapping);
  fmt::print("attention of one layer      forward     backward\n");
  for (const AttentionPoint& p : profile.attention) {
    fmt::print("{:>7} x {:<7} {:<7} {:>8.3f} ms {:>9.3f} ms\n", p.queries, p.keys, p.causal ? "causal" : "full",
               p.forward * 1e3, p.backward * 1e3);
  }
  fmt::print("\nlinear parts, tokens        forward     backward\n");
  for (const LinearPoint& p : profile.linear) {
    fmt::print("{:<10} {:>8}      {:>8.3f} ms {:>9.3f} ms\n", p.part, p.tokens, p.forward * 1e3, p.backward * 1e3);
  }
  fmt::print("\ncollectives       ranks    bytes          time\n");
  for (const CollectivePoint& p : profile.collectives) {
    fmt::print("{:<16} {:>6} {:>10}  {:>8.3f} ms\n", p.operation, p.ranks, p.bytes, p.seconds * 1e3);
  }
  fmt::print("\noptimizer {:.3f} ns a parameter; {:.1f} us a block of attention\n",
             profile.optimizer_seconds_per_parameter * 1e9, profile.attention_block_overhead * 1e6);
}

void run(const ProfileOptions& options) {
  configure_allocator();
  const MeasureOptions measure = options.run.empty() ? options_of_flags(options) : options_of_run(options);
  if (options.if_needed && std::filesystem::exists(options.out)) {
    const HardwareProfile kept = read_hardware_profile(options.out);
    const ProfileKey key = key_of_this_machine(measure.model, measure.precision, measure.threads);
    if (differences(kept.key, key).empty()) {
      if (!options.quiet && !options.json) fmt::print("{}: of this machine and model already\n", options.out);
      return;
    }
  }
  AtomicFile file(options.out);  // before the work: a path that can't be written is known at once
  const bool shown = !options.quiet && ::isatty(STDERR_FILENO) == 1;
  HardwareProfile profile = measure_profile(measure, [&](const std::string& what, double share) {
    if (shown) fmt::print(stderr, "\r\x1b[K{:3.0f}%  {}", share * 100, what);
  });
  if (shown) fmt::print(stderr, "\r\x1b[K");
  profile.measured_by =
      fmt::format("ballast profile {}, {}", options.run.empty() ? "--model " + options.model : "--run " + options.run,
                  date_of_today());
  require_valid(profile.violations(), "the profile just measured");
  const std::string text = to_json(profile);
  file.write(text);
  file.commit();

  const std::size_t points = profile.attention.size() + profile.linear.size() + profile.collectives.size();
  if (options.json) {
    nlohmann::ordered_json summary = nlohmann::ordered_json::parse(text);
    summary["file"] = options.out;
    summary["points_measured"] = points;
    fmt::print("{}\n", summary.dump());
    return;
  }
  if (options.quiet) return;
  print_points(profile);
  fmt::print("{} points in {:.0f} s: {}\n", points, profile.seconds_taken, options.out);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* verb = app.add_subcommand("profile", "Measure this machine: attention, linear parts, collectives");
  verb->add_option("--out", options->out, "File to write the profile to")->required();
  CLI::Option* run_option =
      verb->add_option("--run", options->run, "RUN.toml whose model, precision and threads to measure");
  verb->add_option("--set", options->overrides, "With --run: section.key=value, as `ballast train` takes it")
      ->needs(run_option);
  verb->add_option("--model", options->model, "Or a model by name: " + join(model_preset_names()))
      ->capture_default_str()
      ->excludes(run_option);
  verb->add_option("--precision", options->precision, "float32, bfloat16 or float64")
      ->capture_default_str()
      ->excludes(run_option);
  verb->add_option("--threads", options->threads, "Compute threads of a rank")
      ->capture_default_str()
      ->excludes(run_option);
  verb->add_flag("--if-needed", options->if_needed, "Keep FILE where it is of this machine and model already");
  verb->add_flag("--json", options->json, "Print the profile as one JSON object");
  verb->add_flag("--quiet", options->quiet, "Print nothing but errors");
  verb->footer("Example:\n  ballast profile --model tiny --precision float32 --out profile.json");
  verb->callback([options] { run(*options); });
}

}  // namespace ballast::cli
