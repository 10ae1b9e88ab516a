#include "ballast/ir/packed_step.h"

#include <algorithm>
#include <tuple>

namespace ballast {

Tokens MicroBatch::num_tokens() const {
  Tokens sum = 0;
  for (const Document& document : documents) sum += document.length;
  return sum;
}

Tokens MicroBatch::num_labels() const {
  Tokens sum = 0;
  for (const Document& document : documents) sum += document.num_labels();
  return sum;
}

std::vector<Tokens> MicroBatch::cu_seqlens() const {
  std::vector<Tokens> bounds{0};
  bounds.reserve(documents.size() + 1);
  for (const Document& document : documents) bounds.push_back(bounds.back() + document.length);
  return bounds;
}

Tokens PackedStep::num_tokens() const {
  Tokens sum = 0;
  for (const MicroBatch& micro_batch : micro_batches) sum += micro_batch.num_tokens();
  return sum;
}

Tokens PackedStep::num_labels() const {
  Tokens sum = 0;
  for (const MicroBatch& micro_batch : micro_batches) sum += micro_batch.num_labels();
  return sum;
}

Violations PackedStep::violations(Tokens cap) const {
  Violations found;
  std::vector<std::tuple<std::int64_t, Tokens, Tokens, std::int64_t>> runs;  // arrival, begin, end, id
  for (std::size_t m = 0; m < micro_batches.size(); ++m) {
    const Tokens held = micro_batches[m].num_tokens();
    if (held > cap) {
      found.push_back("step " + std::to_string(step) + " micro-batch " + std::to_string(m) + " holds " +
                      std::to_string(held) + " tokens, over the cap of " + std::to_string(cap));
    }
    for (const Document& document : micro_batches[m].documents) {
      for (std::string& text : document.violations()) found.push_back(std::move(text));
      if (document.length > 0) {
        runs.emplace_back(document.arrival, document.begin, document.begin + document.length, document.id);
      }
    }
  }
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (std::get<0>(runs[i]) == std::get<0>(runs[i - 1]) && std::get<1>(runs[i]) < std::get<2>(runs[i - 1])) {
      found.push_back("step " + std::to_string(step) + ": token " + std::to_string(std::get<1>(runs[i])) +
                      " of document " + std::to_string(std::get<3>(runs[i])) + " is packed twice");
    }
  }
  return found;
}

}  // namespace ballast
