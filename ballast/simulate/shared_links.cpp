#include "ballast/simulate/shared_links.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace ballast {

namespace {

// Of a rank, to or from a tier.
struct Link {
  int rank = 0;
  int tier = 0;
  bool from_rank = false;
  auto operator<=>(const Link&) const = default;
};

using GroupKey = std::tuple<Axis, int, std::int64_t>;  // axis, first member, how many before it

// A transfer under way.
struct Flow {
  std::vector<Link> links;
  Seconds begin = 0;
  Seconds remaining = 0;  // alone
  Seconds updated = 0;    // when `remaining` held
  double rate = 1;
  std::int64_t version = 0;  // of its end event
  enum class Kind { collective, receive, background } kind = Kind::collective;
  std::vector<std::pair<int, const Op*>> ops;  // of the ranks that get a span of it
  GroupKey group;
};

struct Event {
  Seconds time = 0;
  std::int64_t order = 0;  // of events at once: as they were made
  int rank = -1;           // goes on; or
  std::int64_t flow = -1;  // ends, if its version still is
  std::int64_t version = 0;
  bool operator>(const Event& other) const { return std::tie(time, order) > std::tie(other.time, other.order); }
};

struct RankState {
  std::size_t next = 0;
  bool blocked = false;
  Seconds since = 0;  // when it came to the operation at hand
  std::vector<std::size_t> open;
  std::map<Axis, std::int64_t> collectives;
  std::map<Axis, std::int64_t> posted;
  std::map<int, Seconds> done;  // by handle
  std::vector<Span> spans;
  std::vector<Span> background;
};

// The n-th meeting or posting of a group, until all are there.
struct Gathering {
  std::vector<std::pair<int, const Op*>> ops;
  Seconds cost = 0;

  void add(int rank, const Op& op) {
    ops.emplace_back(rank, &op);
    cost = std::max(cost, op.seconds);
  }
};

class SharedEngine {
 public:
  SharedEngine(const Program& program, const LinkTiers& tiers)
      : program_(program), tiers_(tiers), ranks_(program.ranks.size()) {
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) wake(0, rank);
  }

  void run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      if (event.rank >= 0) {
        go_on(event.rank);
      } else if (const auto found = flows_.find(event.flow);
                 found != flows_.end() && found->second.version == event.version) {
        end(event.flow);
      }
    }
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (state(rank).next == ops(rank).size()) continue;
      throw RunError("step " + std::to_string(program_.step) + " never finishes: rank " + std::to_string(rank) +
                     " waits at " + to_string(ops(rank)[state(rank).next].label.kind));
    }
  }

  std::vector<Span> spans() const {
    std::vector<Span> spans;
    for (const RankState& rank : ranks_) append_in_order(spans, rank.spans, rank.background);
    return spans;
  }

 private:
  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<Op>& ops(int rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }

  void wake(Seconds time, int rank) { events_.push({.time = time, .order = order_++, .rank = rank}); }

  // Runs operations until one takes time or has to wait.
  void go_on(int rank) {
    RankState& self = state(rank);
    self.blocked = false;
    for (; self.next < ops(rank).size(); ++self.next) {
      const Op& op = ops(rank)[self.next];
      self.since = now_;
      switch (op.kind) {
        case Op::Kind::begin:
          self.open.push_back(self.spans.size());
          add_span(rank, op, now_, now_, 0);
          break;
        case Op::Kind::end:
          self.spans[self.open.back()].end = now_;
          self.open.pop_back();
          break;
        case Op::Kind::compute:
          if (op.seconds <= 0) break;
          ++self.next;
          return wake(now_ + op.seconds, rank);
        case Op::Kind::send:
          add_span(rank, op, now_, now_ + op.seconds, 0);
          messages_[message_of(op.label, rank)].push_back(now_);
          receive_if_there(op.label.peer);
          if (op.seconds <= 0) break;
          ++self.next;
          return wake(now_ + op.seconds, rank);
        case Op::Kind::receive:
          self.blocked = true;
          receive_if_there(rank);
          return;
        case Op::Kind::collective:
        case Op::Kind::rings:
          self.blocked = true;
          meet(rank, op);
          return;
        case Op::Kind::post:
          post(rank, op);
          break;
        case Op::Kind::await: {
          const auto done = self.done.find(op.handle);
          if (done == self.done.end()) {
            self.blocked = true;
            return;
          }
          break;
        }
      }
    }
  }

  void receive_if_there(int rank) {
    RankState& self = state(rank);
    if (!self.blocked || self.next >= ops(rank).size()) return;
    const Op& op = ops(rank)[self.next];
    if (op.kind != Op::Kind::receive) return;
    std::deque<Seconds>& sent = messages_[message_of(op.label, rank)];
    if (sent.empty()) return;
    sent.pop_front();
    self.blocked = false;  // it is served: nothing else may serve it
    std::vector<Link> links;
    if (const auto tier = tiers_.find(Axis::pp); tier != tiers_.end()) {
      links = {{rank, tier->second, false}, {op.label.peer, tier->second, true}};
    }
    start({.links = links, .remaining = op.seconds, .kind = Flow::Kind::receive, .ops = {{rank, &op}}, .group = {}});
  }

  void meet(int rank, const Op& op) {
    const std::vector<int> group = axis_group(program_.dims, op.label.axis, rank);
    const GroupKey key{op.label.axis, group.front(), state(rank).collectives[op.label.axis]++};
    Gathering& meeting = meetings_[key];
    meeting.add(rank, op);
    if (meeting.ops.size() < group.size()) return;
    if (op.kind == Op::Kind::rings) {
      attend_in_rings(group);
    } else {
      start({.links = links_of(op.label.axis, group),
             .remaining = meeting.cost,
             .kind = Flow::Kind::collective,
             .ops = meeting.ops,
             .group = key});
    }
    meetings_.erase(key);
  }

  // All of `group` are there. Rings share their lanes among themselves (ring_pass.h), and none with other transfers.
  void attend_in_rings(const std::vector<int>& group) {
    std::vector<Seconds> arrivals;
    std::vector<const Op*> at_hand;
    for (const int member : group) {
      arrivals.push_back(state(member).since);
      at_hand.push_back(&ops(member)[state(member).next]);
    }
    const RingsEnd end = end_of_rings(group, at_hand, arrivals, program_.step);
    for (std::size_t m = 0; m < group.size(); ++m) {
      RankState& other = state(group[m]);
      other.spans.insert(other.spans.end(), end.waits[m].begin(), end.waits[m].end());
      ++other.next;
      wake(std::max(now_, end.ends[m]), group[m]);
    }
  }

  // A group's background transfers follow each other.
  void post(int rank, const Op& op) {
    const std::vector<int> group = axis_group(program_.dims, op.label.axis, rank);
    const GroupKey key{op.label.axis, group.front(), state(rank).posted[op.label.axis]++};
    Gathering& posting = postings_[key];
    posting.add(rank, op);
    if (posting.ops.size() == group.size()) start_background(key);
  }

  void start_background(const GroupKey& key) {
    const auto& [axis, first, number] = key;
    const auto found = postings_.find(key);
    std::int64_t& next = next_background_[{axis, first}];
    if (number != next || found == postings_.end()) return;
    const std::vector<int> group = axis_group(program_.dims, axis, first);
    if (found->second.ops.size() < group.size()) return;
    start({.links = links_of(axis, group),
           .remaining = found->second.cost,
           .kind = Flow::Kind::background,
           .ops = found->second.ops,
           .group = key});
    postings_.erase(found);
  }

  std::vector<Link> links_of(Axis axis, const std::vector<int>& group) const {
    std::vector<Link> links;
    const auto tier = tiers_.find(axis);
    if (tier == tiers_.end() || group.size() == 1) return links;
    for (const int member : group) {
      for (const bool from_rank : {false, true}) links.push_back({member, tier->second, from_rank});
    }
    return links;
  }

  void start(Flow flow) {
    flow.begin = flow.updated = now_;
    const std::int64_t id = next_flow_++;
    const Flow& started = flows_.emplace(id, std::move(flow)).first->second;
    for (const Link& link : started.links) on_link_[link].insert(id);
    change_rates(started);
    schedule_end(id);
  }

  void end(std::int64_t id) {
    const Flow flow = std::move(flows_.at(id));
    flows_.erase(id);
    for (const Link& link : flow.links) on_link_[link].erase(id);
    change_rates(flow);
    for (const auto& [rank, op] : flow.ops) {
      RankState& other = state(rank);
      if (flow.kind == Flow::Kind::background) {
        Span span = op->label;
        span.rank = rank;
        span.step = program_.step;
        span.begin = flow.begin;
        span.end = now_;
        other.background.push_back(span);
        other.done[op->handle] = now_;
        if (other.blocked && ops(rank)[other.next].kind == Op::Kind::await &&
            ops(rank)[other.next].handle == op->handle) {
          add_span(rank, ops(rank)[other.next], other.since, now_, 0);
          ++other.next;
          wake(now_, rank);
          other.blocked = false;
        }
        continue;
      }
      add_span(rank, *op, other.since, now_, flow.begin - other.since);
      ++other.next;
      other.blocked = false;
      wake(now_, rank);
    }
    if (flow.kind != Flow::Kind::background) return;
    const auto& [axis, first, number] = flow.group;
    next_background_[{axis, first}] = number + 1;
    start_background({axis, first, number + 1});
  }

  // Of all that share a link with `flow`, itself included while it is under way.
  void change_rates(const Flow& flow) {
    std::set<std::int64_t> touched;
    for (const Link& link : flow.links) {
      const auto& on_link = on_link_[link];
      touched.insert(on_link.begin(), on_link.end());
    }
    for (const std::int64_t id : touched) {
      Flow& other = flows_.at(id);
      std::size_t crowd = 1;
      for (const Link& link : other.links) crowd = std::max(crowd, on_link_[link].size());
      const double rate = 1 / static_cast<double>(crowd);
      if (rate == other.rate) continue;
      other.remaining -= (now_ - other.updated) * other.rate;
      other.updated = now_;
      other.rate = rate;
      schedule_end(id);
    }
  }

  void schedule_end(std::int64_t id) {
    Flow& flow = flows_.at(id);
    events_.push({.time = flow.updated + std::max(0.0, flow.remaining) / flow.rate,
                  .order = order_++,
                  .flow = id,
                  .version = ++flow.version});
  }

  void add_span(int rank, const Op& op, Seconds begin, Seconds end, Seconds wait) {
    RankState& self = state(rank);
    Span span = op.label;
    span.rank = rank;
    span.step = program_.step;
    span.begin = begin;
    span.end = end;
    span.wait = wait;
    if (op.kind == Op::Kind::await && !(end > begin)) return;
    if (op.kind != Op::Kind::begin) {
      for (const std::size_t outer : self.open) self.spans[outer].wait += wait;
    }
    self.spans.push_back(span);
  }

  const Program& program_;
  const LinkTiers& tiers_;
  std::vector<RankState> ranks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Seconds now_ = 0;
  std::int64_t order_ = 0;
  std::int64_t next_flow_ = 0;
  std::map<std::int64_t, Flow> flows_;
  std::map<Link, std::set<std::int64_t>> on_link_;
  std::map<MessageKey, std::deque<Seconds>> messages_;  // sent and not received
  std::map<GroupKey, Gathering> meetings_;
  std::map<GroupKey, Gathering> postings_;
  std::map<std::pair<Axis, int>, std::int64_t> next_background_;  // by axis and first member: the one to start next
};

}  // namespace

Timeline execute_on_shared_links(const Program& program, const LinkTiers& tiers, std::string source) {
  const Violations violations = program.violations();
  if (!violations.empty()) throw RunError("step " + std::to_string(program.step) + ": " + violations.front());
  SharedEngine engine(program, tiers);
  engine.run();
  return {.source = std::move(source), .dims = program.dims, .spans = engine.spans()};
}

}  // namespace ballast
