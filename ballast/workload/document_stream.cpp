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
  start_epoch();
}

void DocumentStream::start_epoch() {
  permutation_.resize(lengths_.size());
  std::iota(permutation_.begin(), permutation_.end(), std::int64_t{0});
  if (!order_.shuffle) return;
  Random random(mix_seed(order_.seed, static_cast<std::uint64_t>(position_.epoch)));
  shuffle(permutation_, random);
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
