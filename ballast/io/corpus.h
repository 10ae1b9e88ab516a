// A corpus folder: tokens.bin and tokens.idx (Megatron's format), domains.bin (two bytes a document) and corpus.json
// (what is in it). docs/formats/corpus.md has the layout. corpus.json is written last: a folder without it is no
// corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/base/token_range.h"
#include "ballast/base/units.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/mapped_file.h"
#include "ballast/io/token_file.h"

namespace ballast {

struct DomainCount {
  std::string name;
  std::int64_t documents = 0;
  Tokens tokens = 0;
  bool operator==(const DomainCount&) const = default;
};

// Content of corpus.json.
struct CorpusSummary {
  std::int64_t documents = 0;
  Tokens tokens = 0;
  Tokens longest_tokens = 0;
  std::vector<DomainCount> domains = {};             // a document's domain is an index into this
  std::string tokenizer = "bytes";                   // bytes, or the path of a tokenizer.json
  std::int64_t vocab_size = 256;                     // every token is below it
  bool append_eod = false;                           // every document ends with token eod
  std::int64_t eod = -1;                             // -1: none
  std::vector<std::string> sources = {};             // paths it was built from, as given
  std::map<std::string, std::int64_t> skipped = {};  // texts left out, by reason

  bool operator==(const CorpusSummary&) const = default;
};

std::string to_json(const CorpusSummary& summary);
// Throws UserError naming `where` and the key.
CorpusSummary corpus_summary_from_json(std::string_view text, std::string_view where);

// Writes a corpus in constant memory. Nothing appears under its final name before commit().
class CorpusWriter {
 public:
  static constexpr std::size_t kMostDomains = 65536;

  // Makes the folder where it is missing. Of `summary` the tokenizer, vocab_size, append_eod, eod and sources are
  // taken. Throws UserError where the folder cannot be made or written, or holds a corpus and `replace` is false.
  CorpusWriter(const std::filesystem::path& folder, CorpusSummary summary, bool replace);
  ~CorpusWriter();  // without commit(): removes the folder again if it made it

  // Adds one document of that domain; with append_eod the end-of-document token is added here.
  // Throws UserError at a token >= vocab_size or one domain too many, RunError where the disk is full.
  void add(std::span<const std::uint32_t> tokens, const std::string& domain);

  const CorpusSummary& summary() const { return summary_; }

  void commit(std::map<std::string, std::int64_t> skipped);

 private:
  std::uint16_t domain_index(const std::string& name);

  std::filesystem::path folder_;
  CorpusSummary summary_;
  bool made_folder_ = false;
  bool committed_ = false;
  std::unordered_map<std::string, std::uint16_t> domain_indices_;
  std::unique_ptr<TokenFileWriter> tokens_;
  std::unique_ptr<AtomicFile> domains_;
};

// Reads a corpus by mapping it. Safe to read from any number of threads.
class Corpus {
 public:
  // Throws UserError naming the file: missing, truncated, or one that disagrees with the others.
  explicit Corpus(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const CorpusSummary& summary() const { return summary_; }
  std::vector<std::string> domain_names() const;

  std::int64_t num_documents() const { return tokens_.num_documents(); }
  // REQUIRES for all below: 0 <= document < num_documents().
  Tokens length(std::int64_t document) const { return tokens_.length(document); }
  int domain(std::int64_t document) const;

  // Of every document, in corpus order: what a DocumentStream takes.
  std::vector<Tokens> lengths() const;
  std::vector<int> domains() const;

  // Copies tokens `range` of the document to `out`. Sizes as in TokenFile::read().
  // Throws UserError naming document and position at a token outside the vocabulary.
  void read(std::int64_t document, TokenRange range, std::span<std::int64_t> out) const {
    tokens_.read(document, range, summary_.vocab_size, out);
  }
  std::vector<std::int64_t> read(std::int64_t document, TokenRange range) const;

 private:
  std::filesystem::path folder_;
  CorpusSummary summary_;
  TokenFile tokens_;
  MappedFile domains_;
};

bool is_corpus(const std::filesystem::path& folder);

}  // namespace ballast
