#include "ballast/workload/document_stream.h"

#include <numeric>
#include <string>
#include <utility>

#include "ballast/base/error.h"
#include "ballast/base/random.h"

namespace ballast {

DocumentStream::DocumentStream(std::vector<Tokens> lengths, std::vector<int> domains, StreamOrder order)
    : lengths_(std::move(lengths)), domains_(std::move(domains)), order_(order) {
  BALLAST_ASSERT(lengths_.size() == domains_.size(), "one domain a document");
  if (lengths_.empty()) throw UserError("the corpus has no documents");
  const std::size_t wanted = static_cast<std::size_t>(order_.num_documents);
  if (wanted > 0 && wanted < lengths_.size()) {
    const std::vector<std::int64_t> first = full_order(0);
    taken_.assign(lengths_.size(), 0);
    for (std::size_t i = 0; i < wanted; ++i) taken_[static_cast<std::size_t>(first[i])] = 1;
  }
  start_epoch();
}

std::vector<std::int64_t> DocumentStream::full_order(std::int64_t epoch) const {
  std::vector<std::int64_t> order(lengths_.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (order_.shuffle) {
    Random random(mix_seed(order_.seed, static_cast<std::uint64_t>(epoch)));
    shuffle(order, random);
  }
  return order;
}

void DocumentStream::start_epoch() {
  permutation_ = full_order(position_.epoch);
  if (!taken_.empty())
    std::erase_if(permutation_, [&](std::int64_t id) { return !taken_[static_cast<std::size_t>(id)]; });
}

std::optional<Document> DocumentStream::next() {
  if (position_.index == num_documents()) {
    if (position_.epoch + 1 == order_.num_epochs) return std::nullopt;
    position_ = {.epoch = position_.epoch + 1, .index = 0};
    start_epoch();
  }
  Document document;
  document.id = permutation_[static_cast<std::size_t>(position_.index)];
  document.arrival = position_.epoch * num_documents() + position_.index;
  document.length = lengths_[static_cast<std::size_t>(document.id)];
  document.domain = domains_[static_cast<std::size_t>(document.id)];
  ++position_.index;
  return document;
}

void DocumentStream::seek(StreamPosition position) {
  const bool after_last = order_.num_epochs > 0 && position.epoch >= order_.num_epochs;
  if (position.epoch < 0 || position.index < 0 || position.index > num_documents() || after_last) {
    throw UserError("position epoch = " + std::to_string(position.epoch) +
                    ", index = " + std::to_string(position.index) + " is not in a corpus of " +
                    std::to_string(num_documents()) + " documents" +
                    (order_.num_epochs > 0 ? " read " + std::to_string(order_.num_epochs) + " times" : ""));
  }
  const bool same_epoch = position.epoch == position_.epoch;
  position_ = position;
  if (!same_epoch) start_epoch();
}

}  // namespace ballast
