#include "ballast/simulate/engine.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

namespace ballast {

namespace {

struct RankState {
  Seconds clock = 0;
  std::size_t next = 0;                      // operation at hand
  std::vector<std::size_t> open;             // spans begun and not ended, as places in `spans`
  std::map<Axis, std::int64_t> collectives;  // joined so far, by axis: members count alike
  std::map<Axis, std::int64_t> posted;       // the same of the background
  std::map<Axis, Seconds> stream_free;       // when the background's last transfer of an axis ends
  std::map<int, Seconds> done;               // by handle: when what was posted ends
  std::vector<Span> spans;                   // in order of time, outer before inner
  std::vector<Span> background;
};

// The n-th transfer that a group has posted: its members, in the order of posting, each with its operation.
struct Posting {
  std::vector<std::pair<int, const Op*>> members;
  Seconds ready = std::numeric_limits<Seconds>::lowest();
};

// The n-th collective of a group. The group is known by its axis and its first member.
struct Meeting {
  std::vector<int> arrived;
  Seconds last_arrival = std::numeric_limits<Seconds>::lowest();
  Seconds cost = 0;
};
using MeetingKey = std::tuple<Axis, int, std::int64_t>;

class Engine {
 public:
  Engine(const Program& program, Seconds begin) : program_(program), ranks_(program.ranks.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].clock = begin;
      ready_.push_back(static_cast<int>(rank));
    }
  }

  void run() {
    while (!ready_.empty()) {
      const int rank = ready_.front();
      ready_.pop_front();
      while (!finished(rank) && advance(rank)) ++state(rank).next;
    }
    std::string stuck;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (!finished(rank)) stuck += (stuck.empty() ? "" : "; ") + describe_wait(rank);
    }
    if (!stuck.empty()) throw RunError("step " + std::to_string(program_.step) + " never finishes: " + stuck);
  }

  std::vector<Span> spans() const {
    std::vector<Span> spans;
    for (const RankState& rank : ranks_) append_in_order(spans, rank.spans, rank.background);
    return spans;
  }

 private:
  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<Op>& ops(int rank) const { return program_.ranks[static_cast<std::size_t>(rank)]; }
  const Op& at(int rank) { return ops(rank)[state(rank).next]; }
  bool finished(int rank) { return state(rank).next == ops(rank).size(); }

  // Runs the operation at hand; false where it must wait for another rank.
  bool advance(int rank) {
    RankState& self = state(rank);
    const Op& op = at(rank);
    switch (op.kind) {
      case Op::Kind::begin:
        self.open.push_back(self.spans.size());
        add_span(rank, op, 0);
        return true;
      case Op::Kind::end:
        self.spans[self.open.back()].end = self.clock;
        self.open.pop_back();
        return true;
      case Op::Kind::compute:
        self.clock += op.seconds;
        return true;
      case Op::Kind::send:
        add_span(rank, op, 0);
        messages_[message_of(op.label, rank)].push_back(self.clock);
        ready_.push_back(op.label.peer);
        return true;
      case Op::Kind::receive: {
        std::deque<Seconds>& sent = messages_[message_of(op.label, rank)];
        if (sent.empty()) return false;
        add_span(rank, op, std::max(0.0, sent.front() - self.clock));
        sent.pop_front();
        return true;
      }
      case Op::Kind::collective:
      case Op::Kind::rings:
        return meet(rank, op);
      case Op::Kind::post:
        post(rank, op);
        return true;
      case Op::Kind::await: {
        const auto done = self.done.find(op.handle);
        if (done == self.done.end()) return false;
        Op waited = op;
        waited.seconds = std::max(0.0, done->second - self.clock);
        self.done.erase(done);
        if (waited.seconds > 0) add_span(rank, waited, 0);
        return true;
      }
    }
    return true;
  }

  // The last member to post starts the transfer for all; those that wait for it may go on.
  void post(int rank, const Op& op) {
    const Axis axis = op.label.axis;
    const std::vector<int> group = axis_group(program_.dims, axis, rank);
    const MeetingKey key{axis, group.front(), state(rank).posted[axis]++};
    Posting& posting = postings_[key];
    posting.members.emplace_back(rank, &op);
    posting.ready = std::max({posting.ready, state(rank).clock, state(rank).stream_free[axis]});
    if (posting.members.size() < group.size()) return;
    // A member's stream may have become busy after it posted.
    Seconds cost = 0;
    for (const auto& [member, posted] : posting.members) {
      posting.ready = std::max(posting.ready, state(member).stream_free[axis]);
      cost = std::max(cost, posted->seconds);
    }
    for (const auto& [member, posted] : posting.members) {
      RankState& other = state(member);
      Span span = posted->label;
      span.rank = member;
      span.step = program_.step;
      span.begin = posting.ready;
      span.end = posting.ready + cost;
      span.wait = 0;
      span.lease = 0;
      other.background.push_back(span);
      other.stream_free[axis] = span.end;
      other.done[posted->handle] = span.end;
      if (member != rank) ready_.push_back(member);
    }
    postings_.erase(key);
  }

  bool meet(int rank, const Op& op) {
    const std::vector<int> group = axis_group(program_.dims, op.label.axis, rank);
    const MeetingKey key{op.label.axis, group.front(), state(rank).collectives[op.label.axis]};
    Meeting& meeting = meetings_[key];
    if (std::find(meeting.arrived.begin(), meeting.arrived.end(), rank) != meeting.arrived.end()) return false;
    meeting.arrived.push_back(rank);
    meeting.last_arrival = std::max(meeting.last_arrival, state(rank).clock);
    meeting.cost = std::max(meeting.cost, op.seconds);
    if (meeting.arrived.size() < group.size()) return false;
    if (op.kind == Op::Kind::rings) {
      attend_in_rings(rank, group, op.label.axis);
      meetings_.erase(key);
      return false;
    }
    for (const int member : group) {
      RankState& other = state(member);
      ++other.collectives[op.label.axis];
      Op joined = at(member);
      joined.seconds = meeting.cost;
      add_span(member, joined, meeting.last_arrival - other.clock);
      if (member != rank) {
        ++other.next;
        ready_.push_back(member);
      }
    }
    meetings_.erase(key);
    return true;
  }

  // All of `group` are there; each goes on when its part of the pass is done.
  void attend_in_rings(int rank, const std::vector<int>& group, Axis axis) {
    std::vector<Seconds> arrivals;
    std::vector<const Op*> at_hand;
    for (const int member : group) {
      arrivals.push_back(state(member).clock);
      at_hand.push_back(&at(member));
    }
    const RingsEnd end = end_of_rings(group, at_hand, arrivals, program_.step);
    for (std::size_t m = 0; m < group.size(); ++m) {
      RankState& other = state(group[m]);
      other.spans.insert(other.spans.end(), end.waits[m].begin(), end.waits[m].end());
      other.clock = end.ends[m];
      ++other.collectives[axis];
      ++other.next;
      if (group[m] != rank) ready_.push_back(group[m]);
    }
    ready_.push_front(rank);
  }

  // Adds the operation's span and moves the rank's clock over it.
  void add_span(int rank, const Op& op, Seconds wait) {
    RankState& self = state(rank);
    Span span = op.label;
    span.rank = rank;
    span.step = program_.step;
    span.begin = self.clock;
    self.clock += wait + op.seconds;
    span.end = self.clock;
    span.wait = wait;
    span.lease = 0;
    if (op.kind != Op::Kind::begin) {
      for (const std::size_t outer : self.open) self.spans[outer].wait += wait;
    }
    self.spans.push_back(span);
  }

  std::string describe_wait(int rank) {
    const Op& op = at(rank);
    const auto label = [](const char* name, int value) { return value < 0 ? "" : name + std::to_string(value); };
    std::string text = "rank " + std::to_string(rank) + " waits at " + to_string(op.label.kind) +
                       label(" stage ", op.label.stage) + label(" micro-batch ", op.label.micro_batch) +
                       label(" layer ", op.label.layer) + " for rank ";
    if (op.kind == Op::Kind::receive) return text + std::to_string(op.label.peer);
    if (op.kind == Op::Kind::await) return text + "that has not posted its part of a transfer";
    std::vector<std::string> missing;
    const std::vector<int> group = axis_group(program_.dims, op.label.axis, rank);
    const Meeting& meeting = meetings_[{op.label.axis, group.front(), state(rank).collectives[op.label.axis]}];
    for (const int member : group) {
      const bool arrived = std::find(meeting.arrived.begin(), meeting.arrived.end(), member) != meeting.arrived.end();
      if (!arrived) missing.push_back(std::to_string(member));
    }
    return text + join(missing);
  }

  const Program& program_;
  std::vector<RankState> ranks_;
  std::deque<int> ready_;                               // ranks that may be able to go on
  std::map<MessageKey, std::deque<Seconds>> messages_;  // sent and not received: when
  std::map<MeetingKey, Meeting> meetings_;
  std::map<MeetingKey, Posting> postings_;
};

}  // namespace

Timeline execute(const Program& program, std::string source, Seconds begin) {
  const Violations violations = program.violations();
  if (!violations.empty()) throw RunError("step " + std::to_string(program.step) + ": " + violations.front());
  Engine engine(program, begin);
  engine.run();
  return {.source = std::move(source), .dims = program.dims, .spans = engine.spans()};
}

}  // namespace ballast
