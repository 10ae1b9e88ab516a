// Everything the report page shows, as one JSON value; the page's scripts draw it and decide nothing. Times in it are
// seconds, but for the timelines, whose numbers are whole tenths of a microsecond since the step began.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ballast/io/run_folder.h"

namespace ballast::cli {

struct ReportOptions {
  std::string command;  // shown on the page, so that it can be made again
  std::string date;
  std::int64_t skip_steps = 0;
  std::size_t max_steps = 20;      // of a run whose timeline is embedded
  std::size_t max_spans = 80'000;  // embedded over all runs: about 4 MB
};

nlohmann::ordered_json report_data(const std::vector<RunFolder>& runs, const ReportOptions& options);

// Steps worth a look, most important first and at most `count`: median, slowest, first, last, then evenly spread.
std::vector<std::int64_t> telling_steps(const std::vector<StepMetrics>& steps, std::size_t count);

}  // namespace ballast::cli
