#include "ballast/ir/packer_state.h"

namespace ballast {

Tokens PackerState::held_tokens() const {
  Tokens sum = 0;
  for (const Document& document : pending) sum += document.length;
  for (const Document& document : intake) sum += document.length;
  for (const auto& queue : queues) {
    for (const Document& document : queue) sum += document.length;
  }
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
  return found;
}

}  // namespace ballast
