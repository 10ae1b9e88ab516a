#include "ballast/runtime/launch/status_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "ballast/base/error.h"

namespace ballast {
namespace {

template <std::size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

Seconds monotonic_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

struct StatusBoard::Record {
  static constexpr int kMostLost = 64;
  // Two texts, of which `current` is the one to read: a rank killed while it writes leaves the other whole.
  std::atomic<int> current;
  char actions[2][160];
  // Written once, before `outcome`.
  std::atomic<int> outcome;
  char error[2048];
  double at;
  int num_lost;
  int lost[kMostLost];
};

StatusBoard::StatusBoard(int fd, int num_ranks)
    : fd_(new int(fd),
          [](int* owned) {
            close(*owned);
            delete owned;
          }),
      num_ranks_(num_ranks) {
  const std::size_t bytes = sizeof(Record) * static_cast<std::size_t>(num_ranks);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw RunError(std::string("status board: cannot be mapped: ") + std::strerror(errno));
  // All zero is a valid empty record, so a fresh file needs no construction.
  static_assert(std::atomic<int>::is_always_lock_free);
  records_ =
      std::shared_ptr<Record[]>(static_cast<Record*>(memory), [bytes](Record* mapped) { munmap(mapped, bytes); });
}

StatusBoard StatusBoard::create(int num_ranks) {
  const int fd = memfd_create("ballast-status", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(sizeof(Record)) * num_ranks) != 0) {
    if (fd >= 0) close(fd);
    throw RunError(std::string("status board: cannot be made: ") + std::strerror(errno));
  }
  return StatusBoard(fd, num_ranks);
}

StatusBoard StatusBoard::attach(int fd, int num_ranks) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(sizeof(Record)) * num_ranks) {
    throw UserError("environment: BALLAST_STATUS_FD=" + std::to_string(fd) + " is no status board of " +
                    std::to_string(num_ranks) + " ranks");
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return StatusBoard(fd, num_ranks);
}

StatusBoard::Record& StatusBoard::record(int rank) const {
  BALLAST_ASSERT(rank >= 0 && rank < num_ranks_, "a rank of the board");
  return records_[rank];
}

void StatusBoard::at_action(int rank, std::string_view action) {
  Record& own = record(rank);
  const int next = 1 - own.current.load(std::memory_order_relaxed);
  copy_text(own.actions[next], action);
  own.current.store(next, std::memory_order_release);
}

void StatusBoard::end(int rank, RankOutcome outcome, std::string_view error, const std::vector<int>& lost_ranks) {
  Record& own = record(rank);
  copy_text(own.error, error);
  own.at = monotonic_now();
  own.num_lost = std::min(static_cast<int>(lost_ranks.size()), Record::kMostLost);
  std::copy_n(lost_ranks.begin(), own.num_lost, own.lost);
  own.outcome.store(static_cast<int>(outcome), std::memory_order_release);
}

RankReport StatusBoard::read(int rank) const {
  const Record& from = record(rank);
  RankReport report;
  report.outcome = static_cast<RankOutcome>(from.outcome.load(std::memory_order_acquire));
  report.action = from.actions[from.current.load(std::memory_order_acquire)];
  if (report.outcome != RankOutcome::running) {
    report.error = from.error;
    report.at = from.at;
    report.lost_ranks.assign(from.lost, from.lost + from.num_lost);
  }
  return report;
}

}  // namespace ballast
