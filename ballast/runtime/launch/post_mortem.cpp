#include "ballast/runtime/launch/post_mortem.h"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace ballast {
namespace {

using How = RankEnd::How;

enum class Cause { killed, user_error, own_error, silent, stopped, lost_peer, none };

Cause cause_of(const RankEnd& end) {
  if (end.how == How::killed) return Cause::killed;
  switch (end.report.outcome) {
    case RankOutcome::user_error:
      return Cause::user_error;
    case RankOutcome::own_error:
      return Cause::own_error;
    case RankOutcome::lost_peer:
      return Cause::lost_peer;
    case RankOutcome::finished:
      return end.how == How::exited && end.code != 0 ? Cause::silent : Cause::none;
    case RankOutcome::running:
      break;
  }
  if (end.how == How::exited) return Cause::silent;
  return end.how == How::stopped ? Cause::stopped : Cause::none;
}

std::string name_of(const RankEnd& end) {
  return "rank " + std::to_string(end.rank) + " (pid " + std::to_string(end.pid) + ")";
}

std::string fate_of(const RankEnd& end) {
  switch (end.how) {
    case How::killed: {
      const char* text = strsignal(end.code);
      return "was killed by signal " + std::to_string(end.code) +
             (text != nullptr ? std::string(" (") + text + ")" : "") +
             (end.code == SIGKILL ? "; if nobody did, the system was out of memory" : "");
    }
    case How::stopped:
      return "is stopped (a signal such as SIGSTOP) and did not answer";
    case How::exited:
      if (end.report.outcome == RankOutcome::running) {
        return "exited with code " + std::to_string(end.code) + " before the end of the run";
      }
      return "failed with exit code " + std::to_string(end.code);
    case How::running:
      break;
  }
  return end.report.outcome == RankOutcome::running ? "is still running" : "failed";
}

std::string or_none(const std::string& text) { return text.empty() ? "none reported" : text; }

}  // namespace

bool has_failed(const RankEnd& end) {
  const Cause cause = cause_of(end);
  return cause != Cause::none && cause != Cause::stopped;
}

bool is_first_cause(const RankEnd& end) {
  const Cause cause = cause_of(end);
  return cause == Cause::killed || cause == Cause::user_error || cause == Cause::own_error;
}

Seconds time_of(const RankEnd& end) { return end.report.outcome == RankOutcome::running ? end.at : end.report.at; }

PostMortem examine(const std::vector<RankEnd>& ends) {
  std::vector<RankEnd> failed;
  for (const RankEnd& end : ends) {
    if (cause_of(end) != Cause::none) failed.push_back(end);
  }
  PostMortem result;
  if (failed.empty()) return result;
  std::stable_sort(failed.begin(), failed.end(), [](const RankEnd& a, const RankEnd& b) {
    return std::pair(cause_of(a), time_of(a)) < std::pair(cause_of(b), time_of(b));
  });
  const RankEnd& first = failed[0];
  if (cause_of(first) == Cause::user_error) {
    result.exit_code = 2;
    result.lines.push_back(first.report.error);
    return result;
  }
  result.exit_code = 1;

  // What followed from it, shortly; the cause itself comes last, where it is read.
  constexpr std::size_t kMostOthers = 8;
  for (std::size_t i = 1; i < failed.size() && i <= kMostOthers; ++i) {
    result.lines.push_back(name_of(failed[i]) + " " + fate_of(failed[i]) + ": " + or_none(failed[i].report.error));
  }
  if (failed.size() > kMostOthers + 1) {
    result.lines.push_back("and " + std::to_string(failed.size() - kMostOthers - 1) + " ranks more");
  }
  if (cause_of(first) == Cause::lost_peer) {
    for (const int lost : first.report.lost_ranks) {
      for (const RankEnd& end : ends) {
        if (end.rank != lost || cause_of(end) != Cause::none) continue;
        result.lines.push_back(name_of(end) + " " + fate_of(end) + ", last action: " + or_none(end.report.action));
      }
    }
  }
  result.lines.push_back(name_of(first) + " failed first: it " + fate_of(first));
  result.lines.push_back("its last action: " + or_none(first.report.action));
  result.lines.push_back("its error: " + or_none(first.report.error));
  return result;
}

}  // namespace ballast
