#include "ballast/simulate/step_column.h"

#include <algorithm>
#include <utility>

namespace ballast {

std::map<SpanKind, Seconds> StepTotals::by_kind() const {
  std::map<SpanKind, Seconds> found;
  for (std::size_t k = 0; k < kNumKinds; ++k) {
    if (seen_[k]) found.emplace(static_cast<SpanKind>(k), seconds_[k]);
  }
  return found;
}

Seconds BackgroundTransfers::post(std::size_t n, Seconds at, Seconds cost, bool& last) {
  if (n == transfers_.size()) transfers_.push_back({});
  Posted& posted = transfers_[n];
  posted.ready = std::max(posted.ready, at);
  posted.cost = std::max(posted.cost, cost);
  last = ++posted.columns == columns_;
  if (!last) return 0;
  const Seconds begin = std::max(posted.ready, free_);
  free_ = posted.end = begin + posted.cost;
  return posted.end - begin;
}

StepColumn::StepColumn(const ParallelDims& dims, const Schedule& schedule, const ProgramSettings& settings,
                       const StepCosts& costs, const ZeroTransfers& transfers, RankCoordinate at,
                       BackgroundTransfers& background, StepTotals& totals)
    : dims_(dims),
      schedule_(schedule),
      settings_(settings),
      costs_(costs),
      actions_(schedule.ranks[static_cast<std::size_t>(at.pp)]),
      transfers_(transfers),
      shares_(costs.shares[static_cast<std::size_t>(at.dp)]),
      pp_(at.pp),
      first_rank_(dims.rank({.dp = at.dp, .pp = at.pp, .cp = 0})),
      background_(background),
      totals_(totals),
      clocks_(static_cast<std::size_t>(dims.cp), 0),
      begins_(clocks_.size()),
      times_(clocks_.size()) {
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const int rank = first_rank_ + static_cast<int>(c);
    compute_factor_.push_back(costs.compute_factor[static_cast<std::size_t>(rank)]);
    cp_factor_ = std::max(cp_factor_, costs.factor(Axis::cp, rank));
    dp_cp_factor_ = std::max(dp_cp_factor_, costs.factor(Axis::dp_cp, rank));
    pp_factor_.push_back(costs.factor(Axis::pp, rank));
  }
  compute_all(SpanKind::LOAD, 0);
}

void StepColumn::run(ColumnNeighbours& neighbours) {
  for (; next_ < actions_.size(); ++next_) {
    const Action& action = actions_[next_];
    if (!begun_) begin_action(neighbours);
    switch (action.kind) {
      case ActionKind::F:
      case ActionKind::B:
        if (!work(action, neighbours)) return;
        break;
      case ActionKind::SEND_F:
      case ActionKind::SEND_B:
        send(action, neighbours);
        break;
      case ActionKind::RECV_F:
      case ActionKind::RECV_B: {
        const std::vector<Seconds>& sent = neighbours.mailbox(action);
        if (sent.empty()) return;
        receive(action, sent);
        break;
      }
    }
    begun_ = false;
  }
  finished_ = await_closing();
}

// Gradients that are still on their way; false where one has not even started.
bool StepColumn::await_closing() {
  for (; closing_ < transfers_.at_end.size(); ++closing_) {
    const ZeroTransfer& transfer = transfers_.at_end[closing_];
    const int slots = costs_.num_slots(transfer.stage);
    for (int slot = 0; slot < slots; ++slot) {
      if (!known(transfer.handle, slot)) return false;
    }
    for (int slot = 0; slot < slots; ++slot) await(transfer.handle, slot);
  }
  return true;
}

std::string StepColumn::waits_at() const {
  return next_ < actions_.size() ? to_string(actions_[next_]) : "its last gradients";
}

void StepColumn::compute_all(SpanKind kind, Seconds seconds) {
  for (std::size_t c = 0; c < clocks_.size(); ++c) totals_.add(kind, compute(c, seconds));
  totals_.events += static_cast<std::int64_t>(clocks_.size());
}

void StepColumn::meet(std::size_t c, Seconds last, Seconds cost, SpanKind kind) {
  const Seconds wait = last - clocks_[c];
  clocks_[c] += wait + cost;
  times_[c].wait += wait;
  times_[c].communication += cost;
  totals_.add(kind, cost);
}

Seconds StepColumn::compute(std::size_t c, Seconds seconds) {
  const Seconds own = seconds * compute_factor_[c];
  clocks_[c] += own;
  times_[c].work += own;
  return own;
}

void StepColumn::compute_each(const std::vector<ShareCosts>& shares, Part part, std::size_t pass) {
  for (std::size_t c = 0; c < clocks_.size(); ++c) work_seconds_ += compute(c, (shares[c].*part)[pass]);
}

// What the background is to do before the action at hand, and with it.
void StepColumn::begin_action(ColumnNeighbours& neighbours) {
  begun_ = true;
  gathered_ = scattered_ = -1;
  slot_done_ = 0;
  begins_ = clocks_;
  for (const auto* by_action : {&transfers_.before, &transfers_.after}) {
    const auto found = by_action->find(next_);
    if (found == by_action->end()) continue;
    for (const ZeroTransfer& transfer : found->second) {
      switch (transfer.kind) {
        case ZeroTransfer::Kind::await:
          gathered_ = transfer.handle;
          break;
        case ZeroTransfer::Kind::post_reshard:
          scattered_ = transfer.handle;
          break;
        case ZeroTransfer::Kind::post_unshard:
          for (int slot = 0; slot < costs_.num_slots(transfer.stage); ++slot) {
            post(SpanKind::UNSHARD, transfer.stage, slot, transfer.handle, neighbours);
          }
          break;
      }
    }
  }
}

void StepColumn::post(SpanKind kind, int stage, int slot, int handle, ColumnNeighbours& neighbours) {
  const auto& of_kind = kind == SpanKind::UNSHARD ? costs_.unshard : costs_.reshard;
  const Seconds seconds = of_kind[static_cast<std::size_t>(stage)][static_cast<std::size_t>(slot)].seconds;
  const auto key = static_cast<std::size_t>(handle);
  if (posted_.size() <= key) posted_.resize(key + 1);
  std::vector<std::size_t>& of_handle = posted_[key];
  of_handle.resize(static_cast<std::size_t>(costs_.num_slots(stage)));
  of_handle[static_cast<std::size_t>(slot)] = num_posted_;
  bool last = false;
  const Seconds held =
      background_.post(num_posted_++, *std::max_element(clocks_.begin(), clocks_.end()), seconds * dp_cp_factor_, last);
  if (!last) return;
  const int ranks = dims_.dp * dims_.cp;
  totals_.add(kind, held * ranks);
  totals_.events += ranks;
  neighbours.transfer_done();
}

Seconds StepColumn::end_of(int handle, int slot) const {
  return background_.end(posted_[static_cast<std::size_t>(handle)][static_cast<std::size_t>(slot)]);
}

void StepColumn::await(int handle, int slot) {
  const Seconds end = end_of(handle, slot);
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Seconds waited = std::max(0.0, end - clocks_[c]);
    if (!(waited > 0)) continue;
    clocks_[c] += waited;
    times_[c].communication += waited;
    totals_.add(SpanKind::AWAIT, waited);
    ++totals_.events;
  }
}

void StepColumn::exchange_tensors(std::size_t pass, const std::vector<ShareCosts>& shares) {
  if (settings_.tensor_parallel == 1) return;
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Seconds cost = shares[c].tensor_exchange[pass];
    clocks_[c] += cost;
    times_[c].communication += cost;
    tensor_seconds_ += cost;
  }
}

void StepColumn::exchange(std::size_t pass, const std::vector<ShareCosts>& shares) {
  const Seconds last = *std::max_element(clocks_.begin(), clocks_.end());
  const Seconds cost = shares.front().kv_exchange[pass] * cp_factor_;
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Seconds wait = last - clocks_[c];
    clocks_[c] += wait + cost;
    times_[c].wait += wait;
    times_[c].communication += cost;
  }
  kv_seconds_[pass] += cost * static_cast<double>(clocks_.size());
}

void StepColumn::attend(std::size_t pass, const std::vector<ShareCosts>& shares) {
  if (shares.front().rings) return attend_in_rings(pass, *shares.front().rings);
  if (pass == 1) compute_each(shares, &ShareCosts::attention, 1);
  exchange(pass, shares);
  if (pass == 0) compute_each(shares, &ShareCosts::attention, 0);
}

void StepColumn::attend_in_rings(std::size_t pass, const std::vector<RingPass>& rings) {
  std::vector<RingSpan> spans;
  const std::vector<Seconds> arrivals = clocks_;
  clocks_ = rings[pass].run(arrivals, &spans, compute_factor_);
  std::vector<Seconds> waited(clocks_.size(), 0);
  for (const RingSpan& span : spans) {
    if (span.kind == RingSpan::Kind::attend) continue;
    const Seconds seconds = span.end - span.begin;
    waited[static_cast<std::size_t>(span.rank)] += seconds;
    totals_.add(span.kind == RingSpan::Kind::move ? SpanKind::REMAP : SpanKind::RING_KV, seconds);
    ++totals_.events;
  }
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Seconds work = clocks_[c] - arrivals[c] - waited[c];
    times_[c].communication += waited[c];
    times_[c].work += work;
    work_seconds_ += work;
  }
}

void StepColumn::forward_layer(const std::vector<ShareCosts>& shares) {
  compute_each(shares, &ShareCosts::layer, 0);
  exchange_tensors(0, shares);
  attend(0, shares);
  compute_each(shares, &ShareCosts::launch_gap, 0);
}

// An F or B; false where it waits for a transfer of the background.
bool StepColumn::work(const Action& action, ColumnNeighbours& neighbours) {
  const bool forward = action.kind == ActionKind::F;
  const int stage = action.stage;
  const int slots = costs_.num_slots(stage);
  const int layers = costs_.num_layers(stage);
  const bool last_stage = stage + 1 == schedule_.num_stages();
  const std::vector<ShareCosts>& shares = shares_[static_cast<std::size_t>(action.micro_batch)];
  for (; slot_done_ < slots; ++slot_done_) {
    const int slot = forward ? slot_done_ : slots - 1 - slot_done_;
    if (gathered_ >= 0) {
      if (!known(gathered_, slot)) return false;
      await(gathered_, slot);
    }
    if (forward) {
      if (stage == 0 && slot == 0) compute_each(shares, &ShareCosts::embedding, 0);
      if (slot < layers) forward_layer(shares);
      continue;
    }
    if (last_stage && slot + 1 == slots) compute_each(shares, &ShareCosts::head, 1);
    if (slot < layers) {
      if (settings_.recompute) forward_layer(shares);
      attend(1, shares);
      compute_each(shares, &ShareCosts::layer, 1);
      exchange_tensors(1, shares);
      compute_each(shares, &ShareCosts::launch_gap, 1);
    }
    if (stage == 0 && slot == 0) compute_each(shares, &ShareCosts::embedding, 1);
    if (slot == 0) {
      const Seconds seconds = costs_.accumulation[static_cast<std::size_t>(stage)];
      for (std::size_t c = 0; c < clocks_.size(); ++c) work_seconds_ += compute(c, seconds);
    }
    if (scattered_ >= 0) post(SpanKind::RESHARD, stage, slot, scattered_, neighbours);
  }
  if (forward && last_stage) compute_each(shares, &ShareCosts::head, 0);
  end_work(forward, shares.front().rings == nullptr, layers);
  return true;
}

void StepColumn::end_work(bool forward, bool gathered, int layers) {
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    totals_.pipeline_begin = std::min(totals_.pipeline_begin, begins_[c]);
    totals_.pipeline_end = std::max(totals_.pipeline_end, clocks_[c]);
    totals_.pipeline_busy += clocks_[c] - begins_[c];
  }
  const std::int64_t passes = (forward || settings_.recompute ? 1 : 0) + (forward ? 0 : 1);
  const std::int64_t each = 1 + layers * passes * ((gathered ? 1 : 0) + (settings_.tensor_parallel > 1 ? 1 : 0));
  totals_.events += each * static_cast<std::int64_t>(clocks_.size());
  totals_.add(forward ? SpanKind::F : SpanKind::B, std::exchange(work_seconds_, 0));
  if (layers == 0) return;
  if (gathered && (forward || settings_.recompute)) {
    totals_.add(SpanKind::GATHER_KV, std::exchange(kv_seconds_[0], 0));
  }
  if (gathered && !forward) totals_.add(SpanKind::REDUCE_KV, std::exchange(kv_seconds_[1], 0));
  if (settings_.tensor_parallel > 1) totals_.add(SpanKind::EXCHANGE_TP, std::exchange(tensor_seconds_, 0));
}

int StepColumn::peer_of(const Action& action) const {
  const bool to_next = action.kind == ActionKind::SEND_F || action.kind == ActionKind::RECV_B;
  return schedule_.rank_of_stage(action.stage + (to_next ? 1 : -1));
}

void StepColumn::send(const Action& action, ColumnNeighbours& neighbours) {
  neighbours.mailbox(action) = clocks_;
  totals_.add(action.kind == ActionKind::SEND_F ? SpanKind::SEND_F : SpanKind::SEND_B, 0);
  totals_.events += static_cast<std::int64_t>(clocks_.size());
  neighbours.message_sent(peer_of(action));
}

void StepColumn::receive(const Action& action, const std::vector<Seconds>& sent) {
  const std::vector<ShareCosts>& shares = shares_[static_cast<std::size_t>(action.micro_batch)];
  const int first_peer = first_rank_ + (peer_of(action) - pp_) * dims_.cp;
  const SpanKind kind = action.kind == ActionKind::RECV_F ? SpanKind::RECV_F : SpanKind::RECV_B;
  for (std::size_t c = 0; c < clocks_.size(); ++c) {
    const Seconds wait = std::max(0.0, sent[c] - clocks_[c]);
    const double factor = std::max(pp_factor_[c], costs_.factor(Axis::pp, first_peer + static_cast<int>(c)));
    const Seconds cost = shares[c].message * factor;
    clocks_[c] += wait + cost;
    times_[c].wait += wait;
    times_[c].communication += cost;
    totals_.pipeline_busy += cost;
    totals_.add(kind, cost);
  }
  totals_.events += static_cast<std::int64_t>(clocks_.size());
}

}  // namespace ballast
