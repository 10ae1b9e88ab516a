#include "ballast/io/corpus_builder.h"

#include <string>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// Large enough that a tokenizer in another process works on all cores, small enough to show progress.
constexpr std::size_t kBatchTexts = 512;
constexpr Bytes kBatchBytes = 4 << 20;

}  // namespace

std::string describe_skipped(const std::map<std::string, std::int64_t>& skipped) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : skipped) parts.push_back(std::to_string(count) + " " + reason);
  return join(parts);
}

void build_corpus(TextSource& texts, Tokenizer& tokenizer, CorpusWriter& writer, std::int64_t max_documents,
                  const std::function<void(const BuildProgress&)>& on_progress) {
  BuildProgress progress;
  std::vector<std::string> batch;
  std::vector<std::string> domains;
  bool more = true;
  while (more) {
    batch.clear();
    domains.clear();
    Bytes batch_bytes = 0;
    while (batch.size() < kBatchTexts && batch_bytes < kBatchBytes) {
      const auto taken = progress.documents + static_cast<std::int64_t>(batch.size());
      auto text = max_documents > 0 && taken == max_documents ? std::nullopt : texts.next();
      more = text.has_value();
      if (!more) break;
      batch_bytes += static_cast<Bytes>(text->bytes.size());
      batch.push_back(std::move(text->bytes));
      domains.push_back(std::move(text->domain));
    }
    const std::vector<std::vector<std::uint32_t>> tokens = tokenizer.encode(batch);
    BALLAST_ASSERT(tokens.size() == batch.size(), "one list of tokens a text");
    for (std::size_t i = 0; i < tokens.size(); ++i) writer.add(tokens[i], domains[i]);
    progress.documents = writer.summary().documents;
    progress.text_bytes += batch_bytes;
    progress.tokens = writer.summary().tokens;
    on_progress(progress);
  }
  if (progress.documents == 0) {
    const std::string skipped = describe_skipped(texts.skipped());
    throw UserError("no text to build a corpus from" + (skipped.empty() ? "" : " (skipped: " + skipped + ")"));
  }
  writer.commit(texts.skipped());
}

}  // namespace ballast
