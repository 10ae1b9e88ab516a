#include "ballast/packing/oversize.h"

namespace ballast {

Document cut_front(Document& document, Tokens tokens, PackingCounts& counts) {
  BALLAST_ASSERT(0 < tokens && tokens < document.length, "a cut lies inside the document");
  if (document.begin == 0 && document.ends) ++counts.split;
  Document front = document;
  front.length = tokens;
  front.ends = false;
  document.begin += tokens;
  document.length -= tokens;
  return front;
}

void require_fits(const PackingSpec& spec, const Document& document) {
  if (spec.oversize != Oversize::refuse || document.length <= spec.window) return;
  throw UserError("document " + std::to_string(document.id) + " has " + std::to_string(document.length) +
                  " tokens, more than window = " + std::to_string(spec.window) +
                  ", and oversize is refuse: choose truncate or split, or a window it fits");
}

void apply_oversize(const PackingSpec& spec, Document document, std::vector<Document>& parts, PackingCounts& counts) {
  require_fits(spec, document);
  if (document.length > spec.window && spec.oversize == Oversize::truncate) {
    ++counts.truncated;
    counts.truncated_tokens += document.length - spec.window;
    document.length = spec.window;
  }
  while (document.length > spec.window) parts.push_back(cut_front(document, spec.window, counts));
  parts.push_back(document);
}

}  // namespace ballast
