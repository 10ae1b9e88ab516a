#include "ballast/runtime/launch/core_lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"

namespace ballast {
namespace {

timespec after(Seconds seconds) {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const auto whole = static_cast<std::time_t>(seconds);
  time.tv_sec += whole;
  time.tv_nsec += static_cast<long>((seconds - static_cast<double>(whole)) * 1e9);
  if (time.tv_nsec >= 1'000'000'000) {
    time.tv_nsec -= 1'000'000'000;
    ++time.tv_sec;
  }
  return time;
}

void make_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

bool lock_until(pthread_mutex_t& mutex, const timespec& deadline) {
  const int result = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &deadline);
  if (result == EOWNERDEAD) pthread_mutex_consistent(&mutex);  // nothing but the lock itself is protected
  BALLAST_ASSERT(result == 0 || result == EOWNERDEAD || result == ETIMEDOUT, "a lease is taken once and given once");
  return result != ETIMEDOUT;
}

}  // namespace

struct CoreLeases::Lock {
  // Whoever holds `turn` is next: the rank that just gave the core back queues behind it.
  pthread_mutex_t turn;
  pthread_mutex_t core;
  std::atomic<int> holder;  // rank + 1; 0: nobody
};

CoreLeases::CoreLeases(int fd, int num_cores)
    : fd_(new int(fd), [](int* owned) {
        close(*owned);
        delete owned;
      }) {
  const std::size_t bytes = sizeof(Lock) * static_cast<std::size_t>(num_cores);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw RunError(std::string("core lease: cannot be mapped: ") + std::strerror(errno));
  locks_ = std::shared_ptr<Lock[]>(static_cast<Lock*>(memory), [bytes](Lock* mapped) { munmap(mapped, bytes); });
}

CoreLeases CoreLeases::create(int num_cores) {
  const int fd = memfd_create("ballast-lease", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(sizeof(Lock)) * num_cores) != 0) {
    if (fd >= 0) close(fd);
    throw RunError(std::string("core lease: cannot be made: ") + std::strerror(errno));
  }
  CoreLeases leases(fd, num_cores);
  for (int core = 0; core < num_cores; ++core) {
    make_mutex(leases.locks_[core].turn);
    make_mutex(leases.locks_[core].core);
  }
  return leases;
}

CoreLeases CoreLeases::attach(pid_t pid, int fd, int num_cores) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) throw RunError("core lease: cannot open " + path + ": " + std::strerror(errno));
  return CoreLeases(own, num_cores);
}

void CoreLeases::take(int core, int rank, Seconds timeout) {
  Lock& lock = locks_[core];
  const timespec deadline = after(timeout);
  bool held = false;
  if (lock_until(lock.turn, deadline)) {
    held = lock_until(lock.core, deadline);
    pthread_mutex_unlock(&lock.turn);
  }
  if (!held) {
    const int holder = lock.holder.load() - 1;
    throw CommunicationError("core lease: rank " + std::to_string(holder) + " has held the core for over " +
                                 std::to_string(static_cast<int>(timeout)) + " s",
                             {holder}, true);
  }
  lock.holder.store(rank + 1);
}

void CoreLeases::give(int core) {
  Lock& lock = locks_[core];
  lock.holder.store(0);
  const int result = pthread_mutex_unlock(&lock.core);
  BALLAST_ASSERT(result == 0, "only the holder gives a core back");
}

}  // namespace ballast
