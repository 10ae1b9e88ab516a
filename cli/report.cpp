// ballast report RUN...: one HTML page that shows where the time of one or several runs went.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/io/atomic_file.h"
#include "cli/report_data.h"
#include "cli/report_page.h"
#include "cli/run_selection.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
  ReportOptions options;
  std::optional<std::int64_t> skip_steps;
  bool json = false;
  bool quiet = false;
};

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

// As one would type it; words that a shell would take apart are quoted.
std::string command_line(const ReportFlags& flags) {
  std::string line = "ballast report";
  const auto add = [&](const std::string& word) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$&;|<>*?()`!#~") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) quoted.replace(at, 1, "'\\''");
    line += plain ? " " + word : " '" + quoted + "'";
  };
  for (const std::string& run : flags.runs) add(run);
  if (flags.skip_steps) line += " --skip-steps " + std::to_string(*flags.skip_steps);
  add("--out");
  add(flags.out);
  return line;
}

void report(ReportFlags flags) {
  const std::vector<RunFolder> runs = read_runs(flags.runs, RunParts::everything);
  flags.options.skip_steps = steps_to_skip(flags.skip_steps, runs);
  flags.options.command = command_line(flags);
  flags.options.date = utc_now();
  const nlohmann::ordered_json data = report_data(runs, flags.options);
  std::string title = "Ballast: ";
  for (std::size_t i = 0; i < runs.size(); ++i) title += (i == 0 ? "" : " against ") + runs[i].name;
  const std::string page = report_page(title, data);
  write_file_atomically(flags.out, page);
  if (flags.json) {
    const nlohmann::ordered_json out = {
        {"out", flags.out}, {"page_bytes", page.size()}, {"story", data["story"]}, {"left_out", data["left_out"]}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  if (flags.quiet) return;
  fmt::print("{}\n", data["story"]["headline"].get<std::string>());
  for (const auto& detail : data["story"]["details"]) fmt::print("  {}\n", detail.get<std::string>());
  for (const RunFolder& run : runs) {
    for (const std::string& note : run.notes) fmt::print("  Note, {}: {}\n", run.name, note);
  }
  fmt::print("{} ({:.1f} MB): open it in a browser\n", flags.out, static_cast<double>(page.size()) / 1e6);
}

}  // namespace

void add_report(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* verb = app.add_subcommand("report", "Write one HTML page that shows where the time of runs went");
  verb->add_option("runs", flags->runs, "Run folders; the first is the base")->required()->expected(1, 1000);
  verb->add_option("--out", flags->out, "The page to write")->required();
  verb->add_option("--skip-steps", flags->skip_steps,
                   "Leave the first K steps out of the figures; default 1, the warm-up")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--max-steps", flags->options.max_steps, "Most steps a run whose timeline is in the page")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "One JSON object on stdout");
  verb->add_flag("--quiet", flags->quiet, "Print nothing");
  verb->footer(
      "Example:\n  ballast report runs/plain runs/balanced --skip-steps 2 --out report.html\n\n"
      "The page needs no network and holds everything it shows; every chart has its table below it.");
  verb->callback([flags] { report(*flags); });
}

}  // namespace ballast::cli
