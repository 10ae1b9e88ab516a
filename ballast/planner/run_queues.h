// The queues of a run that leaves them to be tuned ([packing] tune_queues).
#pragma once

#include "ballast/packing/queue_tuning.h"
#include "ballast/workload/document_stream.h"

namespace ballast {

// Tunes run.packing.queues on the first documents of the run, at most one epoch and `most_steps` steps of them: the
// same queues wherever the same run is set up, on every rank and when it resumes. Throws as tune_queues does.
void tune_run_queues(RunSpec& run, const CostModel& cost, DocumentStream documents,
                     std::int64_t most_steps = kTuningSteps);

}  // namespace ballast
