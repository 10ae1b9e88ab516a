#include "ballast/ir/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace ballast {

namespace {

constexpr std::array<std::pair<ActionKind, std::string_view>, 6> kKindNames{{
    {ActionKind::F, "F"},
    {ActionKind::B, "B"},
    {ActionKind::SEND_F, "SEND_F"},
    {ActionKind::RECV_F, "RECV_F"},
    {ActionKind::SEND_B, "SEND_B"},
    {ActionKind::RECV_B, "RECV_B"},
}};

std::optional<int> parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.front() == '-') return std::nullopt;
  return value;
}

// Takes the next word off `text`; empty at the end.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Runs a schedule: an action goes ahead as soon as all that it needs is done, and nothing else holds it back.
class Run {
 public:
  explicit Run(const Schedule& schedule) : schedule_(schedule), count_(6 * stages() * micro_batches()) {
    for (const auto& actions : schedule.ranks) {
      for (const Action& action : actions) {
        ++count_[index(action)];
        if (action.kind != ActionKind::F && action.kind != ActionKind::B) has_sends_ = true;
      }
    }
  }

  Violations missing_or_doubled() const {
    Violations found;
    for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
      for (int m = 0; m < schedule_.num_micro_batches; ++m) {
        for (const auto& [kind, name] : kKindNames) {
          const Action action{.stage = stage, .kind = kind, .micro_batch = m};
          const int expected = belongs(action) ? 1 : 0;
          const int count = count_[index(action)];
          if (count == expected) continue;
          found.push_back(to_string(action) + (count > 1       ? " is there " + std::to_string(count) + " times"
                                               : expected == 1 ? " is missing"
                                                               : " has no other side"));
        }
      }
    }
    return found;
  }

  Violations deadlock() const {
    std::vector<bool> done(count_.size(), false);
    std::vector<std::size_t> next(schedule_.ranks.size(), 0);
    const auto first_unmet = [&](const Action& action) -> std::optional<Action> {
      for (const Action& needed : needs(action)) {
        if (!done[index(needed)]) return needed;
      }
      return std::nullopt;
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        const auto& actions = schedule_.ranks[rank];
        while (next[rank] < actions.size() && !first_unmet(actions[next[rank]])) {
          done[index(actions[next[rank]++])] = true;
          moved = true;
        }
      }
    }
    Violations found;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule_.ranks[rank].size()) continue;
      const Action& stuck = schedule_.ranks[rank][next[rank]];
      found.push_back("never finishes: rank " + std::to_string(rank) + " waits at " + to_string(stuck) + " for " +
                      to_string(*first_unmet(stuck)));
    }
    return found;
  }

 private:
  std::size_t stages() const { return static_cast<std::size_t>(schedule_.num_stages()); }
  std::size_t micro_batches() const { return static_cast<std::size_t>(schedule_.num_micro_batches); }
  std::size_t index(const Action& a) const {
    return (static_cast<std::size_t>(a.kind) * stages() + static_cast<std::size_t>(a.stage)) * micro_batches() +
           static_cast<std::size_t>(a.micro_batch);
  }

  // Whether stage and stage + 1 exchange messages: not within one rank, where the tensor stays.
  bool crosses(int stage) const {
    return has_sends_ && stage >= 0 && stage + 1 < schedule_.num_stages() &&
           schedule_.rank_of_stage(stage) != schedule_.rank_of_stage(stage + 1);
  }

  bool belongs(const Action& action) const {
    switch (action.kind) {
      case ActionKind::F:
      case ActionKind::B:
        return true;
      case ActionKind::SEND_F:
      case ActionKind::RECV_B:
        return crosses(action.stage);
      case ActionKind::RECV_F:
      case ActionKind::SEND_B:
        return crosses(action.stage - 1);
    }
    return false;
  }

  std::vector<Action> needs(const Action& action) const {
    const auto [stage, kind, m] = action;
    const bool last = stage + 1 == schedule_.num_stages();
    switch (kind) {
      case ActionKind::F:
        if (stage == 0) return {};
        if (crosses(stage - 1)) return {{stage, ActionKind::RECV_F, m}};
        return {{stage - 1, ActionKind::F, m}};
      case ActionKind::B:
        if (last) return {{stage, ActionKind::F, m}};
        if (crosses(stage)) return {{stage, ActionKind::F, m}, {stage, ActionKind::RECV_B, m}};
        return {{stage, ActionKind::F, m}, {stage + 1, ActionKind::B, m}};
      case ActionKind::SEND_F:
        return {{stage, ActionKind::F, m}};
      case ActionKind::RECV_F:
        return {{stage - 1, ActionKind::SEND_F, m}};
      case ActionKind::SEND_B:
        return {{stage, ActionKind::B, m}};
      case ActionKind::RECV_B:
        return {{stage + 1, ActionKind::SEND_B, m}};
    }
    return {};
  }

  const Schedule& schedule_;
  std::vector<int> count_;
  bool has_sends_ = false;
};

}  // namespace

Violations Schedule::violations() const {
  if (num_ranks < 1 || virtual_stages < 1 || num_micro_batches < 1) {
    return {"a schedule needs at least one rank, one stage a rank and one micro-batch"};
  }
  if (ranks.size() != static_cast<std::size_t>(num_ranks)) {
    return {"the schedule has actions for " + std::to_string(ranks.size()) + " ranks, not " +
            std::to_string(num_ranks)};
  }
  // Before anything is sized by these numbers, which may come from a file.
  std::size_t num_actions = 0;
  for (const auto& actions : ranks) num_actions += actions.size();
  if (2.0 * num_ranks * virtual_stages * num_micro_batches > static_cast<double>(num_actions)) {
    return {"the schedule has " + std::to_string(num_actions) +
            " actions, fewer than an F and a B of each stage and micro-batch"};
  }
  Violations found;
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (const Action& action : ranks[static_cast<std::size_t>(rank)]) {
      const std::string which = "rank " + std::to_string(rank) + ": " + to_string(action);
      if (action.stage < 0 || action.stage >= num_stages()) {
        found.push_back(which + ": no such stage");
      } else if (rank_of_stage(action.stage) != rank) {
        found.push_back(which + ": the stage lives on rank " + std::to_string(rank_of_stage(action.stage)));
      }
      if (action.micro_batch < 0 || action.micro_batch >= num_micro_batches) {
        found.push_back(which + ": no such micro-batch");
      }
    }
  }
  if (!found.empty()) return found;
  const Run run(*this);
  found = run.missing_or_doubled();
  return found.empty() ? run.deadlock() : found;
}

int Schedule::max_in_flight(int rank) const {
  int in_flight = 0;
  int most = 0;
  for (const Action& action : ranks[static_cast<std::size_t>(rank)]) {
    in_flight += action.kind == ActionKind::F ? 1 : action.kind == ActionKind::B ? -1 : 0;
    most = std::max(most, in_flight);
  }
  return most;
}

Violations Schedule::violations_where_sends_block() const {
  const auto exchanges = [](const Action& action) {
    return action.kind != ActionKind::F && action.kind != ActionKind::B;
  };
  // The other side of a message, as its own action.
  const auto partner = [](const Action& a) -> Action {
    switch (a.kind) {
      case ActionKind::SEND_F:
        return {a.stage + 1, ActionKind::RECV_F, a.micro_batch};
      case ActionKind::RECV_F:
        return {a.stage - 1, ActionKind::SEND_F, a.micro_batch};
      case ActionKind::SEND_B:
        return {a.stage - 1, ActionKind::RECV_B, a.micro_batch};
      default:
        return {a.stage + 1, ActionKind::SEND_B, a.micro_batch};
    }
  };
  const auto end_of_batch = [&](std::size_t rank, std::size_t begin) {
    const std::vector<Action>& actions = ranks[rank];
    while (begin < actions.size() && exchanges(actions[begin])) ++begin;
    return begin;
  };
  // next[r]: first action of rank r that is not done; everything of the batch that begins there is posted.
  std::vector<std::size_t> next(ranks.size(), 0);
  std::vector<std::vector<bool>> matched;
  for (const std::vector<Action>& actions : ranks) matched.emplace_back(actions.size(), false);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<Action>& actions = ranks[rank];
      while (next[rank] < actions.size()) {
        if (!exchanges(actions[next[rank]])) {
          ++next[rank];
          moved = true;
          continue;
        }
        const std::size_t end = end_of_batch(rank, next[rank]);
        for (std::size_t i = next[rank]; i < end; ++i) {
          if (matched[rank][i]) continue;
          const Action other = partner(actions[i]);
          const auto peer = static_cast<std::size_t>(rank_of_stage(other.stage));
          const std::size_t peer_end = end_of_batch(peer, next[peer]);
          for (std::size_t j = next[peer]; j < peer_end; ++j) {
            if (ranks[peer][j] == other) matched[rank][i] = matched[peer][j] = moved = true;
          }
        }
        const auto first = matched[rank].begin() + static_cast<std::ptrdiff_t>(next[rank]);
        if (!std::all_of(first, matched[rank].begin() + static_cast<std::ptrdiff_t>(end), [](bool m) { return m; })) {
          break;
        }
        next[rank] = end;
        moved = true;
      }
    }
  }
  Violations found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::size_t i = next[rank];
    if (i == ranks[rank].size()) continue;
    while (matched[rank][i]) ++i;
    found.push_back("rank " + std::to_string(rank) + " blocks at " + to_string(ranks[rank][i]) + ", which rank " +
                    std::to_string(rank_of_stage(partner(ranks[rank][i]).stage)) + " never meets");
  }
  return found;
}

std::string to_string(ActionKind kind) {
  for (const auto& [value, name] : kKindNames) {
    if (value == kind) return std::string(name);
  }
  return "?";
}

std::string to_string(const Action& action) {
  return std::to_string(action.stage) + to_string(action.kind) + std::to_string(action.micro_batch);
}

std::string to_string(const Schedule& schedule) {
  std::string text = "schedule " + schedule.name + " ranks " + std::to_string(schedule.num_ranks) + " virtual_stages " +
                     std::to_string(schedule.virtual_stages) + " micro_batches " +
                     std::to_string(schedule.num_micro_batches) + "\n";
  for (const auto& actions : schedule.ranks) {
    std::string line;
    for (const Action& action : actions) {
      if (!line.empty()) line += ' ';
      line += to_string(action);
    }
    text += line + "\n";
  }
  return text;
}

Action parse_action(std::string_view text) {
  const std::size_t kind_begin = text.find_first_not_of("0123456789");
  const std::size_t kind_end = text.find_last_not_of("0123456789");
  if (kind_begin != std::string_view::npos && kind_begin > 0 && kind_end + 1 < text.size()) {
    const std::string_view kind = text.substr(kind_begin, kind_end + 1 - kind_begin);
    const std::optional<int> stage = parse_number(text.substr(0, kind_begin));
    const std::optional<int> micro_batch = parse_number(text.substr(kind_end + 1));
    for (const auto& [value, name] : kKindNames) {
      if (name == kind && stage && micro_batch) return {.stage = *stage, .kind = value, .micro_batch = *micro_batch};
    }
  }
  throw UserError("\"" + std::string(text) +
                  "\" is not an action: stage, one of F, B, SEND_F, RECV_F, SEND_B, RECV_B, " +
                  "micro-batch, as in 2F0");
}

Schedule parse_schedule(std::string_view text) {
  std::string_view header = next_line(text);
  const std::string whole_header(header);
  const auto expect = [&](std::string_view key) {
    if (next_word(header) != key) {
      throw UserError("\"" + whole_header + "\" is not the header of a schedule: " + std::string(key) +
                      " is missing in \"schedule NAME ranks P virtual_stages V micro_batches N\"");
    }
  };
  const auto number = [&](std::string_view key) {
    expect(key);
    const std::string_view word = next_word(header);
    const std::optional<int> value = word.empty() ? std::nullopt : parse_number(word);
    if (!value || *value < 1) {
      throw UserError("schedule: " + std::string(key) + " = \"" + std::string(word) + "\": must be 1 or more");
    }
    return *value;
  };
  Schedule schedule;
  expect("schedule");
  schedule.name = next_word(header);
  schedule.num_ranks = number("ranks");
  schedule.virtual_stages = number("virtual_stages");
  schedule.num_micro_batches = number("micro_batches");
  if (!next_word(header).empty()) throw UserError("\"" + whole_header + "\": the header of a schedule ends too late");

  while (!text.empty()) {
    std::string_view line = next_line(text);
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      actions.push_back(parse_action(word));
    }
  }
  if (schedule.ranks.size() != static_cast<std::size_t>(schedule.num_ranks)) {
    throw UserError("schedule: ranks = " + std::to_string(schedule.num_ranks) + ", but actions are given for " +
                    std::to_string(schedule.ranks.size()));
  }
  return schedule;
}

}  // namespace ballast
