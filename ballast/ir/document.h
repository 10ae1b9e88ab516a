// A document on its way through packing: a run of tokens of one corpus document that attention treats as a whole.
// It is the whole corpus document unless a policy cut it (a window boundary, truncation, splitting); from then on each
// part is a document of its own: positions restart and attention does not look back over the cut (requirement W1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct Document {
  std::int64_t id = 0;       // index in the corpus
  std::int64_t arrival = 0;  // ordinal in the stream of this run: unlike id it never repeats, not even over epochs
  Tokens begin = 0;          // first token, counted inside the corpus document
  Tokens length = 0;         // may be 0
  int domain = 0;            // index in the corpus's list of domains
  bool ends = true;          // the last token is the corpus document's last (or truncation made it so): it has no label
  std::int64_t due_step = 0;  // step whose global batch brought it: delay is the step that trains it minus this

  // Positions with a next token to predict. A part that does not end its document is labelled to its last token.
  Tokens num_labels() const { return length == 0 ? 0 : length - (ends ? 1 : 0); }

  Violations violations() const;
  bool operator==(const Document&) const = default;
};

// "12[0,4096)" or "12[0,4096)*" where it ends the corpus document.
std::string to_string(const Document& document);

}  // namespace ballast
