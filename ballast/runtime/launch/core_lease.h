// One lock a core, shared by the ranks of a host: a rank computes only while it holds its core, so that durations are
// those of a core of its own, though several ranks share it. It gives the core back around every wait for a peer.
//
// The locks live in memory that one rank of the host makes and the others map through its descriptor; nothing is left
// behind by any death. A rank that dies holding a core frees it (but give it before the last CoreLeases goes). A rank
// cannot overtake the one that waits first.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "ballast/base/units.h"

namespace ballast {

class CoreLeases {
 public:
  // `num_cores` locks, all free. Throws RunError where the system refuses.
  static CoreLeases create(int num_cores);
  // Those that process `pid` of this host made and holds as descriptor `fd`.
  static CoreLeases attach(pid_t pid, int fd, int num_cores);

  int fd() const { return *fd_; }

  // Blocks until the calling thread holds the core. Throws CommunicationError naming the holder after `timeout`.
  void take(int core, int rank, Seconds timeout);
  // REQUIRES: the calling thread holds it.
  void give(int core);

 private:
  struct Lock;
  CoreLeases(int fd, int num_cores);

  std::shared_ptr<int> fd_;
  std::shared_ptr<Lock[]> locks_;
};

}  // namespace ballast
