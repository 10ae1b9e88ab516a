// Records what a rank does as spans, with its waits apart from its work. It is also the rank's WaitObserver: around
// every blocking wait it gives the core lease back and takes it again, so that ranks that share a core measure
// durations as if each had its own, and the time the lease costs is kept apart from the time a peer costs.
//
// One recorder a rank; used by the rank's own thread only. Spans nest: open() inside an open span is allowed, and a
// wait counts to every open span.
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "ballast/ir/timeline.h"
#include "ballast/runtime/comm/communicator.h"
#include "ballast/runtime/profiler/pace.h"

namespace ballast {

// What a rank does besides recording when it starts and stops computing, and when it turns to a new action. The core
// lease and the status board are such; this base does nothing.
class RankHooks : public Pace {
 public:
  virtual void compute_begins() {}                      // blocks until this rank holds its core
  virtual void compute_ends() {}                        // gives the core to others
  virtual void at_action(std::string_view /*what*/) {}  // "step 4: 1F3"; for the post-mortem
};

class SpanRecorder final : public WaitObserver {
 public:
  // `hooks` outlives the recorder. Times are seconds since `epoch`, which all ranks of a host share.
  SpanRecorder(int rank, std::chrono::steady_clock::time_point epoch, RankHooks& hooks);

  void begin_step(std::int64_t step) { step_ = step; }
  // Kind and labels from `what`; rank, step and begin are filled in.
  void open(Span what);
  // Ends the innermost open span.
  void close();
  // Finished spans since the last take, by begin. REQUIRES: none open.
  std::vector<Span> take();

  void wait_begins(std::string_view what) override;
  void wait_ends() override;

  Seconds now() const;

 private:
  int rank_;
  std::chrono::steady_clock::time_point epoch_;
  RankHooks& hooks_;
  std::int64_t step_ = 0;
  Seconds wait_began_ = 0;
  std::vector<Span> open_;
  std::vector<Span> done_;
};

// Opens a span and closes it at the end of the block, also when an exception passes.
class SpanScope {
 public:
  SpanScope(SpanRecorder& recorder, Span what) : recorder_(recorder) { recorder_.open(what); }
  ~SpanScope() { recorder_.close(); }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;

 private:
  SpanRecorder& recorder_;
};

}  // namespace ballast
