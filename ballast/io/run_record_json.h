// JSON text <-> StepMetrics, RunSummary, CorpusRecord. Readers ignore keys they do not know (a newer run may have
// more) and throw UserError naming `where` and the key for what is missing or of the wrong kind.
#pragma once

#include <string>
#include <string_view>

#include "ballast/ir/run_record.h"

namespace ballast {

std::string to_json(const StepMetrics& metrics);  // one line, no newline at its end
std::string to_json(const RunSummary& summary);   // indented
std::string to_json(const CorpusRecord& corpus);  // indented

StepMetrics step_metrics_from_json(std::string_view text, std::string_view where);
RunSummary run_summary_from_json(std::string_view text, std::string_view where);
CorpusRecord corpus_record_from_json(std::string_view text, std::string_view where);

}  // namespace ballast
