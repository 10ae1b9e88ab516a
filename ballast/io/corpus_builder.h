// From texts to a corpus folder: reads a few texts at a time, so a corpus larger than memory works; the largest single
// document must fit.
#pragma once

#include <cstdint>
#include <functional>

#include "ballast/base/units.h"
#include "ballast/io/corpus.h"
#include "ballast/io/text_source.h"
#include "ballast/io/tokenizer.h"

namespace ballast {

struct BuildProgress {
  std::int64_t documents = 0;
  Bytes text_bytes = 0;
  Tokens tokens = 0;
};

// Writes up to `max_documents` texts (0: all) and commits. `on_progress` is called after each batch; it may throw to
// stop, and then nothing is left under a final name. Throws UserError where there is no document to write.
void build_corpus(TextSource& texts, Tokenizer& tokenizer, CorpusWriter& writer, std::int64_t max_documents,
                  const std::function<void(const BuildProgress&)>& on_progress);

// "12 binary, 3 empty"
std::string describe_skipped(const std::map<std::string, std::int64_t>& skipped);

}  // namespace ballast
