#include "ballast/cost/ring_pass.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace ballast {

namespace {

using Kind = RingTask::Kind;
constexpr Seconds kNotYet = -1;

Seconds seconds_of(const std::vector<RingBlock>& blocks, const CostModel& cost, Pass pass) {
  Seconds sum = 0;
  for (const RingBlock& block : blocks) {
    sum += cost.part_attention(pass, block.queries.size(), block.keys.size(), block.causal);
  }
  return sum;
}

Seconds seconds_of(const std::vector<TokenRange>& documents, const CostModel& cost, Pass pass) {
  Seconds sum = 0;
  for (const TokenRange& rows : documents) {
    sum += cost.part_attention(pass, rows.size(), rows.size(), true);
  }
  return sum;
}

}  // namespace

RingPass::RingPass(const ShardPlan& plan, const std::vector<RingPlan>& programs, const CostModel& cost, Pass pass)
    : links_(cost.cp_links()), steps_(plan.ranges.size()), work_(plan.ranges.size(), 0) {
  const Bytes q = cost.query_bytes_per_token();
  const Bytes qkv = q + cost.kv_bytes_per_token();
  add_moves(plan, false, pass == Pass::forward ? qkv : q);
  add_program(plan, programs, cost, pass);
  add_moves(plan, true, pass == Pass::forward ? q : qkv);
}

void RingPass::add_message(int from, int to, Bytes bytes) {
  const MessageCost cost = message_cost(links_, from, to, bytes);
  (cost.proxies == 0 ? bytes_inside_ : bytes_across_) += bytes;
  messages_.push_back({from, to, cost});
}

void RingPass::add_compute(int rank, AttentionQueue queue, int ring, Seconds seconds) {
  const auto r = static_cast<std::size_t>(rank);
  steps_[r].push_back({.kind = Step::Kind::compute, .queue = queue, .ring = ring, .seconds = seconds});
  work_[r] += seconds;
}

// Everyone posts all that it gives and takes, then waits.
void RingPass::add_moves(const ShardPlan& plan, bool to_linear, Bytes bytes_per_token) {
  const std::size_t first = messages_.size();
  for (const TokenMove& move : plan.moves) {
    add_message(to_linear ? move.from : move.to, to_linear ? move.to : move.from, move.tokens * bytes_per_token);
  }
  for (std::size_t m = first; m < messages_.size(); ++m) {
    for (const int rank : {messages_[m].from, messages_[m].to}) {
      steps_[static_cast<std::size_t>(rank)].push_back({.kind = Step::Kind::post, .message = static_cast<int>(m)});
    }
  }
  for (std::size_t m = first; m < messages_.size(); ++m) {
    for (const int rank : {messages_[m].from, messages_[m].to}) {
      steps_[static_cast<std::size_t>(rank)].push_back(
          {.kind = Step::Kind::await, .span = RingSpan::Kind::move, .message = static_cast<int>(m)});
    }
  }
}

void RingPass::add_program(const ShardPlan& plan, const std::vector<RingPlan>& programs, const CostModel& cost,
                           Pass pass) {
  std::map<std::tuple<int, bool, int, int>, int> numbers;  // ring, gradients, round, sender: its message
  const auto number = [&](const RingPlan::Membership& membership, bool gradients, int round, int sender,
                          Tokens tokens) {
    const auto [at, made] =
        numbers.try_emplace({membership.ring, gradients, round, sender}, static_cast<int>(messages_.size()));
    if (made) {
      const auto place = std::find(membership.ranks.begin(), membership.ranks.end(), sender) - membership.ranks.begin();
      const int receiver =
          membership.ranks[(static_cast<std::size_t>(place) + 1) % static_cast<std::size_t>(membership.size())];
      add_message(sender, receiver,
                  tokens * (gradients ? cost.kv_gradient_bytes_per_token() : cost.kv_bytes_per_token()));
    }
    return at->second;
  };
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    const RingPlan& program = programs[static_cast<std::size_t>(rank)];
    std::vector<Step>& steps = steps_[static_cast<std::size_t>(rank)];
    for (const RingTask& task : pass == Pass::forward ? program.forward() : program.backward()) {
      if (task.kind == Kind::attend_local) {
        add_compute(rank, AttentionQueue::local, -1,
                    seconds_of(program.local_parts()[static_cast<std::size_t>(task.round)], cost, pass));
        continue;
      }
      const RingPlan::Membership& membership = program.membership(task.ring);
      const int round = task.round;
      const auto post = [&](bool gradients, int sent_round, Tokens sent, int taken_round, Tokens taken) {
        for (const int message : {number(membership, gradients, sent_round, rank, sent),
                                  number(membership, gradients, taken_round, membership.previous(), taken)}) {
          steps.push_back({.kind = Step::Kind::post, .message = message});
        }
      };
      const auto await = [&](bool gradients, int sent_round, Tokens tokens) {
        steps.push_back({.kind = Step::Kind::await,
                         .span = RingSpan::Kind::await_ring,
                         .queue = membership.queue,
                         .ring = membership.ring,
                         .message = number(membership, gradients, sent_round, membership.previous(), tokens)});
      };
      switch (task.kind) {
        case Kind::post_keys:
          post(false, round, membership.tokens_of_round(round - 1), round, membership.tokens_of_round(round));
          break;
        case Kind::await_keys:
          await(false, round, membership.tokens_of_round(round));
          break;
        case Kind::attend:
          add_compute(rank, membership.queue, membership.ring,
                      seconds_of(membership.rounds[static_cast<std::size_t>(round)], cost, pass));
          break;
        case Kind::post_gradients:  // of round r: the sender's own round
          post(true, round, membership.tokens_of_round(round), round, membership.tokens_of_round(round + 1));
          break;
        case Kind::await_gradients:
          await(true, round - 1, membership.tokens_of_round(round));
          break;
        case Kind::attend_local:
          break;
      }
    }
  }
}

void RingPass::begin_message(const Message& message, Seconds now, std::vector<Seconds>& free, Seconds& arrival) const {
  // Lanes: of a node's cards, out and in; then of every rank inside its node, out and in.
  const auto cards = static_cast<std::size_t>(links_.node_of(static_cast<int>(steps_.size()) - 1) + 1) *
                     static_cast<std::size_t>(links_.lanes_per_node);
  const auto card = [&](int rank, int lane, bool in) {
    return 2 * (static_cast<std::size_t>(links_.node_of(rank) * links_.lanes_per_node + lane)) + (in ? 1 : 0);
  };
  std::vector<std::size_t> lanes;
  if (message.cost.proxies == 0) {
    lanes = {2 * (cards + static_cast<std::size_t>(message.from)),
             2 * (cards + static_cast<std::size_t>(message.to)) + 1};
  }
  for (int path = 0; path < message.cost.proxies; ++path) {
    lanes.push_back(card(message.from, path_lane(links_, message.from, path, message.cost.proxies), false));
    lanes.push_back(card(message.to, path_lane(links_, message.to, path, message.cost.proxies), true));
  }
  Seconds begin = now;
  for (const std::size_t lane : lanes) begin = std::max(begin, free[lane]);
  for (const std::size_t lane : lanes) free[lane] = begin + message.cost.occupied;
  arrival = begin + message.cost.total();
}

std::vector<Seconds> RingPass::run(const std::vector<Seconds>& arrivals, std::vector<RingSpan>* spans,
                                   const std::vector<double>& compute_factors) const {
  const std::size_t ranks = steps_.size();
  const auto nodes = static_cast<std::size_t>(links_.node_of(static_cast<int>(ranks) - 1) + 1);
  std::vector<Seconds> clocks = arrivals;
  std::vector<std::size_t> next(ranks, 0);
  std::vector<Seconds> free(2 * (nodes * static_cast<std::size_t>(links_.lanes_per_node) + ranks), 0);
  std::vector<int> posted(messages_.size(), 0);
  std::vector<Seconds> arrival(messages_.size(), kNotYet);
  std::vector<std::vector<int>> waiting(messages_.size());
  std::vector<std::vector<RingSpan>> of_rank(spans == nullptr ? 0 : ranks);

  using Event = std::pair<Seconds, int>;  // who goes on when; equal times in the order of ranks
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (std::size_t r = 0; r < ranks; ++r) events.emplace(clocks[r], static_cast<int>(r));
  std::fill(free.begin(), free.end(), *std::min_element(arrivals.begin(), arrivals.end()));

  const auto record = [&](int rank, const Step& step, Seconds begin, Seconds end) {
    if (spans == nullptr || !(end > begin)) return;
    std::vector<RingSpan>& own = of_rank[static_cast<std::size_t>(rank)];
    const bool moves = step.kind == Step::Kind::await && step.span == RingSpan::Kind::move;
    if (moves && !own.empty() && own.back().kind == RingSpan::Kind::move && own.back().end == begin) {
      own.back().end = end;  // one exchange
      return;
    }
    own.push_back({.rank = rank,
                   .kind = step.kind == Step::Kind::compute ? RingSpan::Kind::attend : step.span,
                   .queue = step.queue,
                   .ring = step.ring,
                   .begin = begin,
                   .end = end});
  };

  while (!events.empty()) {
    const auto [now, rank] = events.top();
    events.pop();
    const auto r = static_cast<std::size_t>(rank);
    bool goes_on = true;
    while (goes_on && next[r] < steps_[r].size()) {
      const Step& step = steps_[r][next[r]];
      const auto m = static_cast<std::size_t>(step.message);
      switch (step.kind) {
        case Step::Kind::compute: {
          const Seconds end = clocks[r] + step.seconds * (compute_factors.empty() ? 1 : compute_factors[r]);
          record(rank, step, clocks[r], end);
          ++next[r];
          goes_on = !(end > clocks[r]);
          clocks[r] = end;
          if (!goes_on) events.emplace(end, rank);
          break;
        }
        case Step::Kind::post:
          ++next[r];
          if (++posted[m] < 2) break;
          begin_message(messages_[m], clocks[r], free, arrival[m]);
          for (const int other : waiting[m]) {
            events.emplace(std::max(arrival[m], clocks[static_cast<std::size_t>(other)]), other);
          }
          waiting[m].clear();
          break;
        case Step::Kind::await:
          if (arrival[m] == kNotYet) {
            waiting[m].push_back(rank);
            goes_on = false;
          } else if (arrival[m] > now) {
            events.emplace(arrival[m], rank);
            goes_on = false;
          } else {
            record(rank, step, clocks[r], std::max(clocks[r], arrival[m]));
            clocks[r] = std::max(clocks[r], arrival[m]);
            ++next[r];
          }
          break;
      }
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) BALLAST_ASSERT(next[r] == steps_[r].size(), "a ring never finishes");
  for (const std::vector<RingSpan>& own : of_rank) spans->insert(spans->end(), own.begin(), own.end());
  return clocks;
}

std::vector<RingPass> ring_passes(const ShardPlan& plan, const CostModel& cost) {
  const std::vector<RingPlan> programs = RingPlan::of_all_ranks(plan);
  return {RingPass(plan, programs, cost, Pass::forward), RingPass(plan, programs, cost, Pass::backward)};
}

}  // namespace ballast
