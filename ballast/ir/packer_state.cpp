#include "ballast/ir/packer_state.h"

namespace ballast {

Tokens PackerState::held_tokens() const {
  Tokens sum = 0;
  for (const Document& document : pending) sum += document.length;
  for (const Document& document : intake) sum += document.length;
  for (const auto& queue : queues) {
    for (const Document& document : queue) sum += document.length;
  }
  for (const PackedStep& packed : ready) sum += packed.num_tokens();
  return sum;
}

Violations PackerState::violations() const {
  Violations found;
  if (next_step < 0) found.push_back("next_step must be 0 or more");
  if (batches_taken < 0) found.push_back("batches_taken must be 0 or more");
  const auto check = [&](const std::vector<Document>& documents) {
    for (const Document& document : documents) {
      for (std::string& text : document.violations()) found.push_back(std::move(text));
    }
  };
  check(pending);
  check(intake);
  for (const auto& queue : queues) check(queue);
  for (const PackedStep& packed : ready) {
    for (const MicroBatch& micro_batch : packed.micro_batches) check(micro_batch.documents);
  }
  for (const Tokens tokens : arrived_tokens) {
    if (tokens < 0) found.push_back("arrived_tokens must be 0 or more");
  }
  if (window_position < 0) found.push_back("window_position must be 0 or more");
  return found;
}

}  // namespace ballast
