// What every local rank was last doing and why it failed, in memory that the launcher shares with its ranks: it
// outlives a rank that is killed. A rank writes its own record only; a record is read whole, never half written.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

enum class RankOutcome : int {
  running,  // or ended without a word
  finished,
  user_error,  // the input is at fault: exit 2
  own_error,   // the work failed here
  lost_peer,   // another rank did not answer: most likely a consequence
};

struct RankReport {
  RankOutcome outcome = RankOutcome::running;
  std::string action;           // "step 4: 1F3"; empty: none yet
  std::string error;            // one line; empty: none
  std::vector<int> lost_ranks;  // of a lost_peer, where known
  Seconds at = 0;               // of the outcome, on the host's monotonic clock

  bool operator==(const RankReport&) const = default;
};

class StatusBoard {
 public:
  // A new board. Throws RunError where the system has no memory for it.
  static StatusBoard create(int num_ranks);
  // The board behind an inherited descriptor. Throws UserError where that is no board of `num_ranks` ranks.
  static StatusBoard attach(int fd, int num_ranks);

  void at_action(int rank, std::string_view action);
  void end(int rank, RankOutcome outcome, std::string_view error = {}, const std::vector<int>& lost_ranks = {});
  RankReport read(int rank) const;

  int fd() const { return fd_.get() != nullptr ? *fd_ : -1; }

 private:
  struct Record;
  StatusBoard(int fd, int num_ranks);
  Record& record(int rank) const;

  std::shared_ptr<int> fd_;            // closed with the last copy
  std::shared_ptr<Record[]> records_;  // mapped, shared between processes
  int num_ranks_;
};

}  // namespace ballast
