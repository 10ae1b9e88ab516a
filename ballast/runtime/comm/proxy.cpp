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
  // Where a connection ends here the receiver knows of it as well, and that the part is lost. A part with nobody to
  // pass it on to is received all the same, or its sender would wait.
  bool both_are_there = true;
  try {
    part->sends.push_back(group_.send_header(onward, part->next));
  } catch (const std::exception&) {
    both_are_there = false;
  }
  try {
    for (Bytes begin = 0; begin < header.bytes; begin += chunk_bytes_) {
      part->chunks.push_back(take_chunk());
      at::Tensor filled = part->chunks.back().slice(0, 0, std::min(chunk_bytes_, header.bytes - begin));
      part->receives.push_back(group_.receive(std::move(filled), header.from, header.tag));
    }
  } catch (const std::exception&) {
    both_are_there = false;
  }
  const std::lock_guard lock(mutex_);
  passing_[part->next_tag] = part;
  if (!both_are_there) return;
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
  if (!send_chunks(part)) return;
  // The origin waits for its sends itself.
  if (part.header.from != part.header.origin) group_.say_received(part.header.from, part.header.tag);
  {
    const std::lock_guard lock(mutex_);
    part.all_sent = true;
    if (!part.received) return;
  }
  release(part);
}

// Gives false where not all came or went.
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
  return true;
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

}  // namespace ballast
