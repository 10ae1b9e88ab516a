// What is done to a document before any packer sees it. The rule: a document longer than the window S is oversize,
// whatever the cap of a micro-batch is, since the window is the longest context the model trains on; a cap over the
// window only makes room for more documents (WLB-LLM, section 4.1).
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/ir/packer_state.h"
#include "ballast/spec/run_spec.h"

namespace ballast {

// Takes the first `tokens` of `document` off it. `document` keeps the rest and its end; each part is a document of its
// own from then on. Counts a whole document that is cut for the first time as split.
// REQUIRES: 0 < tokens < document.length.
Document cut_front(Document& document, Tokens tokens, PackingCounts& counts);

// Throws UserError naming the document, unless it fits the window or the policy makes it fit.
void require_fits(const PackingSpec& spec, const Document& document);

// Appends `document` to `parts`, shortened or in parts of at most a window as the policy says, and counts it. Under
// `refuse` throws as require_fits does.
void apply_oversize(const PackingSpec& spec, Document document, std::vector<Document>& parts, PackingCounts& counts);

}  // namespace ballast
