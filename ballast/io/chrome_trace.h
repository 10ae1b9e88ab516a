// A timeline as a Chrome trace (JSON), which Perfetto, chrome://tracing and Holistic Trace Analysis open. A rank is a
// process; its spans are complete events that nest, with waits as events of their own inside them; each send is tied to
// its receive by a flow; each step is an event `ProfilerStep#N` around its spans, as Kineto writes it. Times are
// microseconds. docs/formats/chrome_trace.md lists the fields.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ballast/ir/timeline.h"

namespace ballast {

struct ChromeTraceOptions {
  std::optional<int> rank;  // only this rank's spans, as tools that read one file a rank want it
  std::string device;       // what the ranks ran on; shown with the process
};

// Calls `write` with piece after piece of the text, so that a long run need not be in memory twice.
// Steps whose times begin at 0 each (predictions) are laid one after the other.
// Throws UserError where `rank` is not one of the timeline's.
void write_chrome_trace(const Timeline& timeline, const ChromeTraceOptions& options,
                        const std::function<void(std::string_view)>& write);

}  // namespace ballast
