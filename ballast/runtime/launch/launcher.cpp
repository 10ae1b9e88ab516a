#include "ballast/runtime/launch/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>

#include "ballast/base/error.h"
#include "ballast/runtime/launch/post_mortem.h"
#include "ballast/runtime/launch/rank_store.h"
#include "ballast/runtime/launch/rendezvous.h"
#include "ballast/runtime/launch/status_board.h"

namespace ballast {
namespace {

using How = RankEnd::How;

// After a rank lost its peer: time for the peer's own end to show.
constexpr Seconds kGrace = 0.5;
// Beyond the ranks' time-out, before a stopped rank that nobody waits for is given up.
constexpr Seconds kStoppedMargin = 2;

Seconds now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// SIGINT, SIGTERM and SIGCHLD blocked while it lives, to be taken by sigtimedwait.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // The next signal, or 0 after a while without.
  int next() const {
    const timespec pause = {.tv_sec = 0, .tv_nsec = 50'000'000};
    return std::max(0, sigtimedwait(&signals_, nullptr, &pause));
  }

 private:
  sigset_t signals_;
  sigset_t before_;
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of_rank(const LocalLaunch& launch, int rank, int store_port, int board_fd) {
  Environment environment = process_environment();
  environment.erase("TORCHELASTIC_RESTART_COUNT");
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(launch.num_ranks);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(store_port);
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  environment["BALLAST_LAUNCHER"] = "ballast";
  environment["BALLAST_STATUS_FD"] = std::to_string(board_fd);
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  return entries;
}

pid_t start_rank(const LocalLaunch& launch, int rank, int store_port, int board_fd) {
  std::vector<std::string> arguments = launch.arguments;
  std::vector<std::string> environment = environment_of_rank(launch, rank, store_port, board_fd);
  const std::vector<char*> argv = pointers_to(arguments);
  const std::vector<char*> envp = pointers_to(environment);
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RunError(std::string("cannot start rank ") + std::to_string(rank) + ": " + std::strerror(errno));
  if (pid > 0) {
    setpgid(pid, pid);
    return pid;
  }
  // Between fork and exec only calls that are safe in a copy of a threaded process.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);  // it died before the line above
  setpgid(0, 0);                        // Ctrl-C reaches the launcher only, which passes it on
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  fcntl(board_fd, F_SETFD, 0);
  // SIGINT and SIGTERM stay blocked until the rank is ready for them; SIGCHLD is none of its business.
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_UNBLOCK, &child_signal, nullptr);
  execve(launch.program.c_str(), argv.data(), envp.data());
  _exit(127);
}

// All ranks, from start to the last reaped.
class Ranks {
 public:
  Ranks(const StatusBoard& board, int num_ranks) : board_(board) { ends_.reserve(static_cast<std::size_t>(num_ranks)); }
  ~Ranks() { kill_all(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  void add(pid_t pid) {
    RankEnd end;
    end.rank = static_cast<int>(ends_.size());
    end.pid = pid;
    ends_.push_back(end);
  }

  void look() {
    for (RankEnd& end : ends_) {
      int status = 0;
      while (is_alive(end) && waitpid(end.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == end.pid) note(end, status);
      end.report = board_.read(end.rank);
    }
  }

  void signal_all(int signal) {
    for (const RankEnd& end : ends_) {
      if (is_alive(end)) kill(end.pid, signal);
    }
  }

  void kill_all() {
    for (RankEnd& end : ends_) {
      if (!is_alive(end)) continue;
      kill(-end.pid, SIGKILL);
      kill(end.pid, SIGKILL);  // where it has not got its process group yet
      waitpid(end.pid, nullptr, 0);
      end.how = How::exited;
    }
  }

  bool any_alive() const { return std::any_of(ends_.begin(), ends_.end(), is_alive); }
  const std::vector<RankEnd>& ends() const { return ends_; }

 private:
  static bool is_alive(const RankEnd& end) { return end.how == How::running || end.how == How::stopped; }

  static void note(RankEnd& end, int status) {
    end.at = now();
    if (WIFEXITED(status)) {
      end.how = How::exited;
      end.code = WEXITSTATUS(status);
    } else if (WIFSIGNALED(status)) {
      end.how = How::killed;
      end.code = WTERMSIG(status);
    } else if (WIFSTOPPED(status)) {
      end.how = How::stopped;
    } else {
      end.how = How::running;
    }
  }

  const StatusBoard& board_;
  std::vector<RankEnd> ends_;
};

// When the run is to be given up, seen from how the ranks are: now, at a later time, or never (infinity).
Seconds give_up_at(const std::vector<RankEnd>& ends, Seconds timeout) {
  Seconds when = std::numeric_limits<double>::infinity();
  for (const RankEnd& end : ends) {
    if (has_failed(end)) when = std::min(when, time_of(end) + (is_first_cause(end) ? 0 : kGrace));
    if (end.how == How::stopped) when = std::min(when, end.at + timeout + kStoppedMargin);
  }
  return when;
}

}  // namespace

int launch_local_ranks(const LocalLaunch& launch) {
  BALLAST_ASSERT(launch.num_ranks >= 1 && !launch.arguments.empty(), "at least one rank, and an argv");
  const StatusBoard board = StatusBoard::create(launch.num_ranks);
  HostedStore store;
  const BlockedSignals signals;
  Ranks ranks(board, launch.num_ranks);
  for (int rank = 0; rank < launch.num_ranks; ++rank) {
    ranks.add(start_rank(launch, rank, store.port(), board.fd()));
  }
  store.serve(launch.num_ranks);

  int stop_requests = 0;
  while (ranks.any_alive()) {
    const int signal = signals.next();
    if (signal == SIGINT || signal == SIGTERM) {
      if (++stop_requests > 1) {
        ranks.kill_all();
        std::fprintf(stderr, "ballast: ended at once, before the step was done\n");
        return 1;
      }
      std::fprintf(stderr, "ballast: stopping after this step; once more to end at once\n");
      ranks.signal_all(SIGINT);
    }
    ranks.look();
    if (now() >= give_up_at(ranks.ends(), launch.timeout)) break;
  }
  const PostMortem result = examine(ranks.ends());
  ranks.kill_all();
  std::fflush(stdout);
  for (const std::string& line : result.lines) std::fprintf(stderr, "ballast: %s\n", line.c_str());
  return result.exit_code;
}

}  // namespace ballast
