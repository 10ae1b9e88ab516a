// Keys and values go round the ring of each document while its ranks attend what they have (requirement Z4). The order
// of everything is the RingPlan's; here are the tensors. Partial results are merged by log-sum-exp in float32 or wider.
#include <ATen/ATen.h>

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ballast/ir/ring_program.h"
#include "ballast/runtime/attention/core.h"
#include "ballast/runtime/attention/local_kernel.h"

namespace ballast {

namespace {

using Kind = RingTask::Kind;
using Membership = RingPlan::Membership;

enum Purpose : std::uint32_t { kKeysForward, kKeysBackward, kGradients, kNumPurposes };

std::vector<AttentionPart> parts_of(const std::vector<RingBlock>& blocks) {
  std::vector<AttentionPart> parts;
  for (const RingBlock& block : blocks) parts.push_back({block.queries.size(), block.keys.size(), block.causal});
  return parts;
}

std::vector<AttentionPart> parts_of(const std::vector<TokenRange>& documents) {
  std::vector<AttentionPart> parts;
  for (const TokenRange& rows : documents) parts.push_back({rows.size(), rows.size(), true});
  return parts;
}

at::Tensor rows_of(const at::Tensor& x_TX, const TokenRange& rows) { return x_TX.narrow(0, rows.begin, rows.size()); }

at::Tensor take_rows(const at::Tensor& x_TX, const std::vector<TokenRange>& rows) {
  std::vector<at::Tensor> pieces;
  for (const TokenRange& range : rows) pieces.push_back(rows_of(x_TX, range));
  return pieces.empty() ? x_TX.narrow(0, 0, 0).contiguous() : at::cat(pieces);
}

void add_rows(const at::Tensor& into_TX, const std::vector<TokenRange>& rows, const at::Tensor& from_RX) {
  std::int64_t at = 0;
  for (const TokenRange& range : rows) {
    rows_of(into_TX, range).add_(from_RX.narrow(0, at, range.size()));
    at += range.size();
  }
}

// The messages of one pass: tensors on their way from rank to rank of each ring.
class RingMessages {
 public:
  RingMessages(const AttentionContext& context, int layer) : context_(context), layer_(layer) {}

  // Both keep the tensor until the message is through.
  void send(const Membership& membership, Purpose purpose, const at::Tensor& tensor) {
    auto& sent = sent_[{membership.ring, purpose}];
    sent.push_back({tensor, context_.cp.send(tensor, membership.next(), tag(membership, purpose))});
    if (sent.size() > 2) {  // the receiver had room for one ahead: what went before has long been taken
      wait(sent.front(), static_cast<Bytes>(sent.front().tensor.nbytes()));
      sent.erase(sent.begin());
    }
  }
  void receive(const Membership& membership, Purpose purpose, at::Tensor tensor) {
    received_[{membership.ring, purpose}].push_back(
        {tensor, context_.cp.receive(tensor, membership.previous(), tag(membership, purpose))});
  }
  // The oldest that was posted and not yet taken.
  at::Tensor take(const Membership& membership, Purpose purpose) {
    auto& received = received_[{membership.ring, purpose}];
    BALLAST_ASSERT(!received.empty(), "a message is awaited that was not posted");
    Message message = std::move(received.front());
    received.erase(received.begin());
    wait(message, 0);
    return message.tensor;
  }
  void finish() {
    for (auto& [key, sent] : sent_) {
      for (Message& message : sent) wait(message, static_cast<Bytes>(message.tensor.nbytes()));
    }
    sent_.clear();
  }

 private:
  struct Message {
    at::Tensor tensor;
    std::unique_ptr<Transfer> transfer;
  };
  using Key = std::pair<int, Purpose>;

  static std::uint32_t tag(const Membership& membership, Purpose purpose) {
    return static_cast<std::uint32_t>(membership.ring) * kNumPurposes + purpose;
  }

  void wait(Message& message, Bytes sent) {
    const SpanScope scope(context_.recorder, context_.span(SpanKind::RING_KV, layer_, sent));
    message.transfer->wait();
  }

  const AttentionContext& context_;
  int layer_;
  std::map<Key, std::vector<Message>> sent_;
  std::map<Key, std::vector<Message>> received_;
};

// Merges attention over further keys into what the rows have so far.
class Accumulator {
 public:
  explicit Accumulator(const at::Tensor& q_THD) {
    const auto wide = q_THD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    out_THD = at::zeros(q_THD.sizes(), q_THD.options().dtype(wide));
    lse_HT = at::full({q_THD.size(1), q_THD.size(0)}, -std::numeric_limits<double>::infinity(), out_THD.options());
  }

  void add(const TokenRange& rows, const AttentionOutput& part) {
    merge_into({rows_of(out_THD, rows), lse_HT.narrow(1, rows.begin, rows.size())}, part);
  }
  // Rows that have nothing so far.
  void set(const TokenRange& rows, const AttentionOutput& all) {
    rows_of(out_THD, rows).copy_(all.out_QHD);
    lse_HT.narrow(1, rows.begin, rows.size()).copy_(all.lse_HQ);
  }

  at::Tensor out_THD;
  at::Tensor lse_HT;
};

class RingCore final : public AttentionCore {
 public:
  RingCore(const ShardPlan& plan, const AttentionContext& context)
      : context_(context), plan_(plan, context.cp.rank()) {}

  AttentionState forward(int layer, const at::Tensor& q_THD, const at::Tensor& k_TKD,
                         const at::Tensor& v_TKD) const override {
    const at::Tensor kv_T2KD = at::stack({k_TKD, v_TKD}, 1);
    RingMessages messages(context_, layer);
    std::map<int, at::Tensor> keys = own_keys(kv_T2KD);  // by ring, of the round at hand
    Accumulator result(q_THD);
    for (const RingTask& task : plan_.forward()) {
      switch (task.kind) {
        case Kind::post_keys:
          pass_keys(task, kKeysForward, keys, messages);
          break;
        case Kind::await_keys:
          keys.at(task.ring) = messages.take(plan_.membership(task.ring), kKeysForward);
          break;
        case Kind::attend:
          attend(task, q_THD, keys.at(task.ring), result);
          break;
        case Kind::attend_local:
          attend_local(task.round, q_THD, kv_T2KD, result);
          break;
        case Kind::await_gradients:
        case Kind::post_gradients:
          BALLAST_ASSERT(false, "no gradients in forward");
      }
    }
    messages.finish();
    return {q_THD, kv_T2KD, result.out_THD.to(q_THD.scalar_type()), result.lse_HT};
  }

  std::array<at::Tensor, 3> backward(int layer, const AttentionState& state,
                                     const at::Tensor& dout_THD) const override {
    RingMessages messages(context_, layer);
    std::map<int, at::Tensor> keys = own_keys(state.kv);
    std::map<int, at::Tensor> gradients;  // by ring, of the keys of the round at hand
    const at::Tensor dq_THD = at::zeros(state.q_THD.sizes(), state.lse_HT.options());
    const at::Tensor dkv_T2KD = at::zeros(state.kv.sizes(), state.lse_HT.options());
    for (const RingTask& task : plan_.backward()) {
      switch (task.kind) {
        case Kind::post_keys:
          pass_keys(task, kKeysBackward, keys, messages);
          break;
        case Kind::await_keys:
          keys.at(task.ring) = messages.take(plan_.membership(task.ring), kKeysBackward);
          break;
        case Kind::attend: {
          const at::Tensor found = attend_backward(task, state, dout_THD, keys.at(task.ring), dq_THD);
          if (task.round == 0) {
            add_rows(dkv_T2KD, plan_.membership(task.ring).own_rows, found);
          } else {
            gradients[task.ring] = found;
          }
          break;
        }
        case Kind::await_gradients: {
          const Membership& membership = plan_.membership(task.ring);
          const at::Tensor theirs = messages.take(membership, kGradients);
          if (task.round == membership.size()) {
            add_rows(dkv_T2KD, membership.own_rows, theirs);
          } else {
            gradients.at(task.ring).add_(theirs);
          }
          break;
        }
        case Kind::post_gradients: {
          const Membership& membership = plan_.membership(task.ring);
          const at::Tensor& mine = gradients.at(task.ring);
          messages.send(membership, kGradients, mine);
          messages.receive(membership, kGradients, like(mine, membership.tokens_of_round(task.round + 1)));
          break;
        }
        case Kind::attend_local:
          attend_local_backward(task.round, state, dout_THD, dq_THD, dkv_T2KD);
          break;
      }
    }
    messages.finish();
    const auto type = state.q_THD.scalar_type();
    const at::Tensor dkv = dkv_T2KD.to(type);
    return {dq_THD.to(type), dkv.select(1, 0), dkv.select(1, 1)};
  }

 private:
  static at::Tensor like(const at::Tensor& rows_RX, Tokens rows) {
    std::vector<std::int64_t> shape = rows_RX.sizes().vec();
    shape[0] = rows;
    return at::empty(shape, rows_RX.options());
  }

  std::map<int, at::Tensor> own_keys(const at::Tensor& kv_T2KD) const {
    std::map<int, at::Tensor> keys;
    for (const Membership& membership : plan_.memberships()) {
      keys.emplace(membership.ring, take_rows(kv_T2KD, membership.own_rows));
    }
    return keys;
  }

  void pass_keys(const RingTask& task, Purpose purpose, const std::map<int, at::Tensor>& keys,
                 RingMessages& messages) const {
    const Membership& membership = plan_.membership(task.ring);
    const at::Tensor& held = keys.at(task.ring);
    messages.receive(membership, purpose, like(held, membership.tokens_of_round(task.round)));
    messages.send(membership, purpose, held);
  }

  const std::vector<RingBlock>& blocks(const RingTask& task) const {
    return plan_.membership(task.ring).rounds[static_cast<std::size_t>(task.round)];
  }

  void attend(const RingTask& task, const at::Tensor& q_THD, const at::Tensor& keys_R2KD, Accumulator& result) const {
    for (const RingBlock& block : blocks(task)) {
      const at::Tensor kv = rows_of(keys_R2KD, block.keys);
      result.add(block.queries,
                 attend_part(rows_of(q_THD, block.queries), kv.select(1, 0), kv.select(1, 1), block.causal));
    }
    context_.pace.attention_done(true, parts_of(blocks(task)));
  }

  void attend_local(int part, const at::Tensor& q_THD, const at::Tensor& kv_T2KD, Accumulator& result) const {
    const std::vector<TokenRange>& documents = plan_.local_parts()[static_cast<std::size_t>(part)];
    for (const TokenRange& rows : documents) {
      const at::Tensor kv = rows_of(kv_T2KD, rows);
      result.set(rows, attend_part(rows_of(q_THD, rows), kv.select(1, 0), kv.select(1, 1), true));
    }
    context_.pace.attention_done(true, parts_of(documents));
  }

  static void part_backward(const AttentionState& state, const at::Tensor& dout_THD, const TokenRange& queries,
                            const at::Tensor& kv, bool causal, const at::Tensor& dq_THD, const at::Tensor& dkv) {
    attend_part_backward(rows_of(dout_THD, queries), rows_of(state.q_THD, queries), kv.select(1, 0), kv.select(1, 1),
                         {rows_of(state.out_THD, queries), state.lse_HT.narrow(1, queries.begin, queries.size())},
                         causal, {rows_of(dq_THD, queries), dkv.select(1, 0), dkv.select(1, 1)});
  }

  // Adds to dq; the gradients of the keys of the round.
  at::Tensor attend_backward(const RingTask& task, const AttentionState& state, const at::Tensor& dout_THD,
                             const at::Tensor& keys_R2KD, const at::Tensor& dq_THD) const {
    at::Tensor dkeys_R2KD = at::zeros(keys_R2KD.sizes(), state.lse_HT.options());
    for (const RingBlock& block : blocks(task)) {
      part_backward(state, dout_THD, block.queries, rows_of(keys_R2KD, block.keys), block.causal, dq_THD,
                    rows_of(dkeys_R2KD, block.keys));
    }
    context_.pace.attention_done(false, parts_of(blocks(task)));
    return dkeys_R2KD;
  }

  void attend_local_backward(int part, const AttentionState& state, const at::Tensor& dout_THD,
                             const at::Tensor& dq_THD, const at::Tensor& dkv_T2KD) const {
    const std::vector<TokenRange>& documents = plan_.local_parts()[static_cast<std::size_t>(part)];
    for (const TokenRange& rows : documents) {
      part_backward(state, dout_THD, rows, rows_of(state.kv, rows), true, dq_THD, rows_of(dkv_T2KD, rows));
    }
    context_.pace.attention_done(false, parts_of(documents));
  }

  AttentionContext context_;
  RingPlan plan_;
};

}  // namespace

std::unique_ptr<AttentionCore> make_ring_core(const ShardPlan& plan, const AttentionContext& context) {
  return std::make_unique<RingCore>(plan, context);
}

}  // namespace ballast
