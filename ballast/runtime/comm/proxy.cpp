#include "ballast/runtime/comm/proxy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace ballast {

Proxy::~Proxy() {
  {
    const std::lock_guard lock(mutex_);  // or a thread about to wait would miss the call
    changed_.notify_all();
  }
  for (auto& [from, forwarder] : forwarders_) forwarder->thread.join();
}

at::Tensor Proxy::take_chunk() {
  const std::lock_guard lock(mutex_);
  if (spare_chunks_.empty()) return at::empty({chunk_bytes_}, at::kByte);
  at::Tensor chunk = std::move(spare_chunks_.back());
  spare_chunks_.pop_back();
  return chunk;
}

void Proxy::pass_on(const RouteHeader& header) {
  const auto part = std::make_shared<Part>();
  part->header = header;
  part->next = header.sender_proxy == group_.rank() ? header.receiver_proxy : header.destination;
  part->next_tag = group_.draw_tag();
  RouteHeader onward = header;
  onward.from = group_.rank();
  onward.tag = part->next_tag;
  bool next_is_there = true;
  try {
    part->sends.push_back(group_.send_header(onward, part->next));
  } catch (const std::exception&) {
    next_is_there = false;  // receive all the same: it is the receiver that has an error, not the sender
  }
  try {
    for (Bytes begin = 0; begin < header.bytes; begin += chunk_bytes_) {
      part->chunks.push_back(take_chunk());
      at::Tensor filled = part->chunks.back().slice(0, 0, std::min(chunk_bytes_, header.bytes - begin));
      part->receives.push_back(group_.receive(std::move(filled), header.from, header.tag));
    }
  } catch (const std::exception&) {
    part->lost_rank = header.from;
  }
  const std::lock_guard lock(mutex_);
  passing_[part->next_tag] = part;
  if (!next_is_there) return;
  std::unique_ptr<Forwarder>& forwarder = forwarders_[header.from];
  if (!forwarder) {
    forwarder = std::make_unique<Forwarder>();
    forwarder->thread = std::thread([this, &mine = *forwarder] { run(mine); });
  }
  forwarder->parts.push_back(part);
  changed_.notify_all();
}

void Proxy::run(Forwarder& forwarder) {
  while (true) {
    std::shared_ptr<Part> part;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return group_.stopped() || !forwarder.parts.empty(); });
      if (group_.stopped()) return;
      part = std::move(forwarder.parts.front());
      forwarder.parts.pop_front();
    }
    forward(*part);
  }
}

void Proxy::forward(Part& part) {
  if (!send_chunks(part)) {
    int lost_rank = part.header.from;
    {
      const std::lock_guard lock(mutex_);
      if (part.lost_rank >= 0) lost_rank = part.lost_rank;
    }
    if (!group_.stopped()) group_.note(RouteHeaderKind::lost, part.next, part.next_tag, lost_rank);
    return;
  }
  // The origin waits for its sends itself.
  if (part.header.from != part.header.origin) {
    group_.note(RouteHeaderKind::received, part.header.from, part.header.tag);
  }
  {
    const std::lock_guard lock(mutex_);
    part.all_sent = true;
    if (!part.received) return;
  }
  release(part);
}

// Gives false where not all came. Where it is the next hop that is gone nobody is there to be told, so the two need not
// be told apart.
bool Proxy::send_chunks(Part& part) {
  Bytes left = part.header.bytes;
  try {
    for (std::size_t i = 0; i < part.receives.size(); ++i) {
      if (!group_.wait(part.receives[i])) return false;
      const Bytes bytes = std::min(chunk_bytes_, left);
      part.sends.push_back(group_.send(part.chunks[i].slice(0, 0, bytes), part.next, part.next_tag));
      forwarded_bytes_ += bytes;
      left -= bytes;
    }
  } catch (const std::exception&) {
    return false;
  }
  return left == 0;
}

void Proxy::take_received(const RouteHeader& note) {
  std::shared_ptr<Part> part;
  {
    const std::lock_guard lock(mutex_);
    const auto found = passing_.find(note.tag);
    if (found == passing_.end()) return;
    part = found->second;
    part->received = true;
    if (!part->all_sent) return;  // the last chunk has arrived before its send has come back
  }
  release(*part);
}

// The next hop has it all, so these waits are short: until this side knows that it has sent.
void Proxy::release(Part& part) {
  bool done = true;
  try {
    for (const RouteGroup::Work& send : part.sends) done = group_.wait(send) && done;
  } catch (const std::exception&) {
    done = false;
  }
  const std::lock_guard lock(mutex_);
  if (done) spare_chunks_.insert(spare_chunks_.end(), part.chunks.begin(), part.chunks.end());
  passing_.erase(part.next_tag);  // the caller has the part
}

bool Proxy::take_lost(const RouteHeader& note) {
  const std::lock_guard lock(mutex_);
  for (auto& [tag, part] : passing_) {
    if (part->header.from != note.from || part->header.tag != note.tag) continue;
    part->lost_rank = note.lost_rank;
    for (const RouteGroup::Work& receive : part->receives) receive->abort();
    return true;
  }
  return false;
}

}  // namespace ballast
