#include "ballast/runtime/comm/route_group.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace ballast {
namespace {

constexpr int kHeaderTag = 0;
constexpr int kFarewellTag = 1;
constexpr std::uint32_t kFirstDataTag = 2;
constexpr std::uint32_t kDataTags = 0x7fff0000;  // c10d's tags are not negative
constexpr auto kForever = std::chrono::milliseconds(std::chrono::hours(24 * 365));
// The other side takes notes at once: this far back they are long received, and their memory may go.
constexpr std::size_t kNotesKept = 256;

constexpr auto kHeaderBytes = static_cast<std::int64_t>(sizeof(RouteHeader));

}  // namespace

std::string first_line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), std::chrono::milliseconds(1));
}

int RouteGroup::size() const { return group_->getSize(); }

RouteGroup::Work RouteGroup::send(at::Tensor bytes, int to, int tag) {
  std::vector<at::Tensor> tensors = {std::move(bytes)};
  const std::lock_guard lock(posting_);
  return group_->send(tensors, to, tag);
}

RouteGroup::Work RouteGroup::receive(at::Tensor bytes, int from, int tag) {
  std::vector<at::Tensor> tensors = {std::move(bytes)};
  const std::lock_guard lock(posting_);
  return group_->recv(tensors, from, tag);
}

RouteGroup::Work RouteGroup::send_header(const RouteHeader& header, int to) {
  at::Tensor bytes = at::empty({kHeaderBytes}, at::kByte);
  std::memcpy(bytes.data_ptr(), &header, sizeof header);
  return send(std::move(bytes), to, kHeaderTag);
}

void RouteGroup::say_received(int to, int tag) {
  try {
    Work work = send_header({.kind = RouteHeaderKind::received, .from = rank_, .tag = tag}, to);
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(work));
    if (notes_.size() > kNotesKept) notes_.pop_front();
  } catch (const std::exception&) {  // it is gone
  }
}

int RouteGroup::draw_tag() { return static_cast<int>(kFirstDataTag + tags_drawn_++ % kDataTags); }

bool RouteGroup::next_header(int from, RouteHeader& header) {
  const at::Tensor bytes = at::empty({kHeaderBytes}, at::kByte);
  if (!wait(receive(bytes, from, kHeaderTag))) return false;
  std::memcpy(&header, bytes.data_ptr(), sizeof header);
  return true;
}

bool RouteGroup::wait(const Work& work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    waited_for_.push_back(work.get());
  }
  bool done = false;
  std::exception_ptr error;
  try {
    done = work->wait(kForever);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  std::erase(waited_for_, work.get());
  if (error) std::rethrow_exception(error);
  return done;
}

void RouteGroup::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (c10d::Work* work : waited_for_) work->abort();
}

bool RouteGroup::stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void RouteGroup::leave_together(Seconds timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000));
  std::vector<Work> works;
  const auto with_whoever_is_there = [](const auto& call) {
    try {
      call();
    } catch (const std::exception&) {  // gone: it needs nobody any more
    }
  };
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    with_whoever_is_there([&] { works.push_back(receive(at::zeros({1}, at::kByte), peer, kFarewellTag)); });
    with_whoever_is_there([&] { works.push_back(send(at::zeros({1}, at::kByte), peer, kFarewellTag)); });
  }
  for (const Work& work : works) with_whoever_is_there([&] { work->wait(left_until(deadline)); });
}

}  // namespace ballast
