// What a rank process holds from its start to its end, whoever launched it: its place among the ranks, the store, its
// share of the cores and its record on the status board. As RankHooks it takes and gives the core lease and notes what
// the rank does.
//
//   return run_as_rank(identity, spec.launch, [&](RankSession& session) {
//     SpanRecorder recorder(session.identity().rank, session.epoch(), session);
//     Mesh mesh = make_mesh(dims, session.identity().rank, session.store(),
//                           {session.gloo_address(), spec.launch.timeout_seconds, &recorder});
//     session.settle();
//     ... steps, each asking stop_requested() ...
//   });
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "ballast/runtime/launch/core_lease.h"
#include "ballast/runtime/launch/cores.h"
#include "ballast/runtime/launch/rank_store.h"
#include "ballast/runtime/launch/rendezvous.h"
#include "ballast/runtime/launch/status_board.h"
#include "ballast/runtime/profiler/span_recorder.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

class RankSession final : public RankHooks {
 public:
  // Meets the other ranks in the store and shares out the cores. Errors as of RankStore.
  RankSession(const RankIdentity& identity, const LaunchSpec& spec, StatusBoard board);
  ~RankSession() override;
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  const RankIdentity& identity() const { return identity_; }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_.get(); }
  const std::string& gloo_address() const { return gloo_address_; }
  const CoreShare& share() const { return share_; }
  // One moment that all ranks of rank 0's host agree on; on another host its own start.
  std::chrono::steady_clock::time_point epoch() const { return epoch_; }

  // To be called once, when the mesh is made: sets the number of compute threads, pins this thread and those it makes
  // from now on (Gloo's, made before, stay free to run on any core), and takes the core lease.
  void settle();
  // Runs `check` of the input on every rank and returns where all pass. Else throws on all ranks the UserError of the
  // first that has one, its rank named where that is not 0: so that nobody waits for a rank that has refused its input.
  // All ranks call it at the same place, once.
  void check_together(const std::function<void()>& check);
  // For a rank about to end by an error, whose mesh is gone: calls `say`, but not where rank 0 says the very same.
  // Waits a few seconds for that where others may have the same error, for all have the same input and plans.
  void say_once(const std::string& error, bool others_may_have_it, const std::function<void()>& say);
  // Gives the core back and leaves the store, once this rank needs its peers no more.
  void leave();

  void compute_begins() override;
  void compute_ends() override;
  void at_action(std::string_view what) override;

 private:
  void share_out_cores();

  RankIdentity identity_;
  LaunchSpec spec_;
  StatusBoard board_;
  RankStore store_;
  std::string gloo_address_;
  std::chrono::steady_clock::time_point epoch_;
  CoreShare share_;
  std::optional<CoreLeases> leases_;
  int lease_slot_ = 0;
  bool holds_core_ = false;
};

// Runs `body` as this process's rank and gives the exit code: 0, 1 for failed work, 2 for a user's fault. The error
// goes to the launcher's status board, which prints it once; without such a board, to standard error, and what all
// ranks have is said by rank 0 alone.
int run_as_rank(const RankIdentity& identity, const LaunchSpec& spec,
                const std::function<void(RankSession& session)>& body);

}  // namespace ballast
