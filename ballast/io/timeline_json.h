// Timelines as JSONL (docs/formats/timeline.md): a header line, then one or more lines a step. Times are written in
// seconds with a resolution of 1e-7.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/ir/timeline.h"

namespace ballast {

// Appends to a timeline file while a run goes on. One formatting pass and one write a call: about half a microsecond a
// span, so recording stays far under 1% of a step. One thread.
class TimelineWriter {
 public:
  // Begins the file, or, where it exists, goes on with it: what it holds of steps from `first_step` on is cut off (a
  // run that resumes runs them again), and so is a line that was never finished. Throws UserError where the file cannot
  // be written or holds another source or other dims.
  TimelineWriter(const std::filesystem::path& path, const std::string& source, const ParallelDims& dims,
                 std::int64_t first_step = 0);
  ~TimelineWriter();
  TimelineWriter(const TimelineWriter&) = delete;
  TimelineWriter& operator=(const TimelineWriter&) = delete;

  // A line for each run of spans of one step. Throws RunError where the disk is full.
  void append(const std::vector<Span>& spans);

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  std::string buffer_;
};

std::string to_json(const Timeline& timeline);
// Throws UserError naming `where`, the line and the key. A last line without its line end is not read: the run that
// wrote it was killed. Does not judge the value beyond ranks being in range: see violations().
Timeline timeline_from_json(std::string_view text, std::string_view where);

Timeline read_timeline(const std::filesystem::path& path);
// The timeline of a run from its folder `timeline/`: measured-rank-*.jsonl together, or predicted.jsonl or
// replayed.jsonl. Throws UserError where there is none.
Timeline read_run_timeline(const std::filesystem::path& timeline_folder, const std::string& source);
// "measured-rank-00003.jsonl"
std::string measured_timeline_name(int rank);

}  // namespace ballast
