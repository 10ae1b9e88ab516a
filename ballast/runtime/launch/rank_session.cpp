#include "ballast/runtime/launch/rank_session.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/launch/stop_signal.h"

namespace ballast {
namespace {

using Clock = std::chrono::steady_clock;

// Ranks that fail of the same thing do so together, but on a busy machine not at the same moment.
constexpr Seconds kSameErrorSeconds = 5;

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

void put(c10d::Store& store, const std::string& key, const std::string& value) {
  store.set(key, std::vector<std::uint8_t>(value.begin(), value.end()));
}

// `key` ends in the rank that publishes it.
std::string get(c10d::Store& store, const std::string& key, Seconds timeout) {
  const Clock::time_point began = Clock::now();
  try {
    store.wait({key}, std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000)));
    const std::vector<std::uint8_t> value = store.get(key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception& error) {
    const Seconds waited = std::chrono::duration<double>(Clock::now() - began).count();
    const std::string rank = key.substr(key.rfind('/') + 1);
    if (waited < timeout) {  // it was not the time-out
      throw CommunicationError("start: lost the store after " + std::to_string(static_cast<int>(waited)) +
                                   " s, while waiting for " + key + ": whoever serves it has ended (" +
                                   first_line(error.what()) + ")",
                               {}, false);
    }
    throw CommunicationError("start: no answer from rank " + rank + " within " +
                                 std::to_string(static_cast<int>(timeout)) + " s (it did not publish " + key + ")",
                             {std::atoi(rank.c_str())}, true);
  }
}

// Names a host such that two ranks with the same name see each other's processes.
std::string host_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code ignored;
  return boot + "/" + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

}  // namespace

RankSession::RankSession(const RankIdentity& identity, const LaunchSpec& spec, StatusBoard board)
    : identity_(identity),
      spec_(spec),
      board_(std::move(board)),
      store_(identity, spec.timeout_seconds),
      gloo_address_(address_towards(identity.master_address)),
      epoch_(Clock::now()) {
  const std::string host = host_name();
  if (identity_.rank == 0) {
    put(*store(), "epoch/0", host + " " + std::to_string(epoch_.time_since_epoch().count()));
  } else {
    const std::string told = get(*store(), "epoch/0", spec_.timeout_seconds);
    const std::size_t space = told.rfind(' ');
    if (told.substr(0, space) == host) epoch_ = Clock::time_point(Clock::duration(std::stoll(told.substr(space + 1))));
  }
  share_out_cores();
}

RankSession::~RankSession() { compute_ends(); }

// Ranks that may use the very same cores of the same host share them. A launcher that binds each rank to cores of its
// own (Slurm, mpirun) has shared them out already: such a rank finds itself alone on them.
void RankSession::share_out_cores() {
  const std::vector<int> cores = allowed_cores();
  std::string place = host_name();
  for (const int core : cores) place.append(" ").append(std::to_string(core));
  put(*store(), "place/" + std::to_string(identity_.rank), place);
  std::vector<int> peers;
  for (int rank = 0; rank < identity_.world_size; ++rank) {
    if (rank == identity_.rank || get(*store(), "place/" + std::to_string(rank), spec_.timeout_seconds) == place) {
      peers.push_back(rank);
    }
  }
  const auto own = std::find(peers.begin(), peers.end(), identity_.rank) - peers.begin();
  share_ = share_cores(cores, static_cast<int>(own), static_cast<int>(peers.size()), spec_);
  lease_slot_ = static_cast<int>(std::find(cores.begin(), cores.end(), share_.cores[0]) - cores.begin());
  if (!share_.leased) return;

  const int num_cores = static_cast<int>(cores.size());
  const std::string key = "lease/" + std::to_string(peers[0]);
  if (own == 0) {
    leases_ = CoreLeases::create(num_cores);
    put(*store(), key, std::to_string(getpid()) + " " + std::to_string(leases_->fd()));
  } else {
    const std::string maker = get(*store(), key, spec_.timeout_seconds);
    leases_ = CoreLeases::attach(std::stoi(maker), std::stoi(maker.substr(maker.find(' ') + 1)), num_cores);
  }
}

void RankSession::settle() {
  at::set_num_threads(share_.threads);
  if (share_.pinned) pin_this_thread(share_.cores);
  compute_begins();
}

void RankSession::check_together(const std::function<void()>& check) {
  std::string fault;
  try {
    check();
  } catch (const UserError& error) {
    fault = error.what();
  }
  put(*store(), "check/" + std::to_string(identity_.rank), "fault: " + fault);
  for (int rank = 0; rank < identity_.world_size; ++rank) {
    const std::string told = get(*store(), "check/" + std::to_string(rank), spec_.timeout_seconds).substr(7);
    if (!told.empty()) throw UserError(rank == 0 ? told : "rank " + std::to_string(rank) + ": " + told);
  }
}

void RankSession::say_once(const std::string& error, bool others_may_have_it, const std::function<void()>& say) {
  compute_ends();  // others need the core to come to their end
  const std::string own = "error/" + std::to_string(identity_.rank);
  if (identity_.rank == 0) say();  // before anyone is told that it is said
  bool said = identity_.rank == 0;
  try {
    if (identity_.rank > 0) {
      if (others_may_have_it) said = get(*store(), "error/0", kSameErrorSeconds) == error;
      put(*store(), own, error);  // rank 0, and the store perhaps with it, stays for this long
    } else {
      put(*store(), own, error);
      const Clock::time_point began = Clock::now();
      for (int rank = 1; others_may_have_it && rank < identity_.world_size; ++rank) {
        const Seconds waited = std::chrono::duration<double>(Clock::now() - began).count();
        get(*store(), "error/" + std::to_string(rank), std::max(kSameErrorSeconds - waited, 0.001));
      }
    }
  } catch (const std::exception&) {  // another rank has no such error, or the store is gone
  }
  if (!said) say();
}

void RankSession::leave() {
  compute_ends();
  store_.leave();
}

void RankSession::compute_begins() {
  if (!leases_ || holds_core_) return;
  leases_->take(lease_slot_, identity_.rank, spec_.timeout_seconds);
  holds_core_ = true;
}

void RankSession::compute_ends() {
  if (!holds_core_) return;
  leases_->give(lease_slot_);
  holds_core_ = false;
}

void RankSession::at_action(std::string_view what) { board_.at_action(identity_.rank, what); }

int run_as_rank(const RankIdentity& identity, const LaunchSpec& spec,
                const std::function<void(RankSession& session)>& body) {
  const char* fd = std::getenv("BALLAST_STATUS_FD");
  const bool watched = fd != nullptr && identity.launcher == "ballast";
  std::optional<StatusBoard> board;
  std::optional<RankSession> session;
  const auto fail = [&](RankOutcome outcome, const std::string& error, const std::vector<int>& lost = {}) {
    const int exit_code = outcome == RankOutcome::user_error ? 2 : 1;
    if (board) board->end(identity.rank, outcome, error, lost);
    if (watched && board) return exit_code;
    const auto say = [&] {
      // A user's fault is of the input, whatever a rank was doing.
      const std::string action = board && outcome != RankOutcome::user_error ? board->read(identity.rank).action : "";
      const bool of_all = outcome == RankOutcome::user_error && identity.rank == 0;
      std::fprintf(stderr, "ballast: %s%s%s%s%s\n",
                   of_all ? "" : ("rank " + std::to_string(identity.rank) + ": ").c_str(), error.c_str(),
                   action.empty() ? "" : " (last action: ", action.c_str(), action.empty() ? "" : ")");
    };
    if (session) {
      session->say_once(error, outcome != RankOutcome::lost_peer, say);
    } else {
      say();
    }
    return exit_code;
  };
  try {
    board =
        watched ? StatusBoard::attach(std::atoi(fd), identity.world_size) : StatusBoard::create(identity.world_size);
    board->at_action(identity.rank, "start: meeting the other ranks");
    install_stop_signal();
    // A peer that died is an error of the exchange, which says who is lost; a signal from its closed socket would say
    // nothing and hide the one that failed first.
    std::signal(SIGPIPE, SIG_IGN);
    session.emplace(identity, spec, *board);
    body(*session);
    session->leave();
    board->end(identity.rank, RankOutcome::finished);
    return 0;
  } catch (const UserError& error) {
    return fail(RankOutcome::user_error, error.what());
  } catch (const CommunicationError& error) {
    return fail(RankOutcome::lost_peer, error.what(), error.lost_ranks);
  } catch (const std::exception& error) {
    return fail(RankOutcome::own_error, first_line(error.what()));
  }
}

}  // namespace ballast
