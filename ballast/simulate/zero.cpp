#include "ballast/simulate/zero.h"

#include <set>

namespace ballast {

namespace {

// Computations that follow each other on one stage, messages between them left aside.
struct Run {
  int stage;
  std::size_t first, last;  // action
};

std::vector<Run> runs(const std::vector<Action>& actions, bool backwards_only) {
  std::vector<Run> found;
  bool broken = true;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto [stage, kind, m] = actions[i];
    if (kind != ActionKind::F && kind != ActionKind::B) continue;
    if (backwards_only && kind == ActionKind::F) {
      broken = true;
      continue;
    }
    if (!broken && found.back().stage == stage) {
      found.back().last = i;
    } else {
      found.push_back({stage, i, i});
    }
    broken = false;
  }
  return found;
}

}  // namespace

ZeroTransfers zero_transfers(const std::vector<Action>& actions, int zero) {
  using Kind = ZeroTransfer::Kind;
  ZeroTransfers transfers;
  if (zero < 1) return transfers;
  int handle = 0;

  std::vector<Run> gathers = runs(actions, false);
  if (zero < 3) {  // the first run of each stage
    std::set<int> seen;
    std::erase_if(gathers, [&](const Run& run) { return !seen.insert(run.stage).second; });
  }
  for (std::size_t r = 0; r < gathers.size(); ++r) {
    // All before anything else where weights stay; else when the run before begins.
    const std::size_t posted_at = zero < 3 || r == 0 ? 0 : gathers[r - 1].first;
    transfers.before[posted_at].push_back({Kind::post_unshard, gathers[r].stage, handle});
    transfers.before[gathers[r].first].push_back({Kind::await, gathers[r].stage, handle});
    ++handle;
  }

  std::vector<Run> scatters = runs(actions, true);
  if (zero < 2) {  // the last backward of each stage
    std::map<int, Run> last;
    for (const Run& run : scatters) last.insert_or_assign(run.stage, run);
    std::erase_if(scatters, [&](const Run& run) { return last.at(run.stage).last != run.last; });
  }
  for (const Run& run : scatters) {
    transfers.after[run.last].push_back({Kind::post_reshard, run.stage, handle});
    transfers.at_end.push_back({Kind::await, run.stage, handle});
    ++handle;
  }
  return transfers;
}

}  // namespace ballast
