#include "ballast/io/corpus.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "ballast/base/error.h"

namespace ballast {

namespace fs = std::filesystem;

bool is_corpus(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "corpus.json", ignored);
}

CorpusWriter::CorpusWriter(const fs::path& folder, CorpusSummary summary, bool replace)
    : folder_(folder), summary_(std::move(summary)) {
  if (is_corpus(folder_) && !replace) {
    throw UserError(folder_.string() + ": holds a corpus already; --force replaces it");
  }
  std::error_code error;
  made_folder_ = fs::create_directories(folder_, error);
  if (error) throw UserError(folder_.string() + ": cannot be made: " + error.message());
  tokens_ = std::make_unique<TokenFileWriter>(folder_ / "tokens", token_type_for(summary_.vocab_size));
  domains_ = std::make_unique<AtomicFile>(folder_ / "domains.bin");
}

CorpusWriter::~CorpusWriter() {
  tokens_.reset();
  domains_.reset();
  std::error_code ignored;
  if (made_folder_ && !committed_) fs::remove(folder_, ignored);
}

std::uint16_t CorpusWriter::domain_index(const std::string& name) {
  const auto [entry, added] = domain_indices_.try_emplace(name, static_cast<std::uint16_t>(summary_.domains.size()));
  if (added) {
    if (summary_.domains.size() == kMostDomains) {
      throw UserError("domain \"" + name + "\": a corpus has at most " + std::to_string(kMostDomains) + " domains");
    }
    summary_.domains.push_back({.name = name});
  }
  return entry->second;
}

void CorpusWriter::add(std::span<const std::uint32_t> tokens, const std::string& domain) {
  for (const std::uint32_t token : tokens) {
    if (token >= summary_.vocab_size) {
      throw UserError(summary_.tokenizer + ": gave token " + std::to_string(token) + ", outside its vocabulary [0, " +
                      std::to_string(summary_.vocab_size) + ")");
    }
  }
  tokens_->append(tokens);
  Tokens length = static_cast<Tokens>(tokens.size());
  if (summary_.append_eod) {
    const std::array<std::uint32_t, 1> eod = {static_cast<std::uint32_t>(summary_.eod)};
    tokens_->append(eod);
    ++length;
  }
  tokens_->end_document();
  const std::uint16_t index = domain_index(domain);
  domains_->write({reinterpret_cast<const char*>(&index), sizeof index});
  ++summary_.domains[index].documents;
  summary_.domains[index].tokens += length;
  ++summary_.documents;
  summary_.tokens += length;
  summary_.longest_tokens = std::max(summary_.longest_tokens, length);
}

void CorpusWriter::commit(std::map<std::string, std::int64_t> skipped) {
  summary_.skipped = std::move(skipped);
  // From here to the end the folder is no corpus: a reader must not meet new tokens under an old corpus.json.
  std::error_code ignored;
  fs::remove(folder_ / "corpus.json", ignored);
  tokens_->commit();
  domains_->commit();
  write_file_atomically(folder_ / "corpus.json", to_json(summary_));
  committed_ = true;
}

namespace {

fs::path require_corpus(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    throw UserError(folder.string() + ": no such folder; make a corpus with `ballast corpus build`");
  }
  if (!is_corpus(folder)) {
    throw UserError(folder.string() + ": no corpus.json in it; make a corpus with `ballast corpus build`");
  }
  return folder;
}

}  // namespace

Corpus::Corpus(fs::path folder)
    : folder_(require_corpus(folder)),
      summary_(corpus_summary_from_json(read_file(folder_ / "corpus.json"), (folder_ / "corpus.json").string())),
      tokens_(folder_ / "tokens"),
      domains_(folder_ / "domains.bin") {
  const auto refuse = [&](const char* file, const std::string& why) {
    throw UserError((folder_ / file).string() + ": " + why);
  };
  if (summary_.documents != num_documents()) {
    refuse("corpus.json", "documents = " + std::to_string(summary_.documents) + ", but tokens.idx has " +
                              std::to_string(num_documents()));
  }
  if (summary_.tokens != tokens_.num_tokens()) {
    refuse("corpus.json", "tokens = " + std::to_string(summary_.tokens) + ", but tokens.bin has " +
                              std::to_string(tokens_.num_tokens()));
  }
  if (domains_.bytes().size() != 2 * static_cast<std::size_t>(num_documents())) {
    refuse("domains.bin", std::to_string(domains_.bytes().size()) + " bytes, but " + std::to_string(num_documents()) +
                              " documents need two bytes each");
  }
  for (std::int64_t i = 0; i < num_documents(); ++i) {
    if (domain(i) >= static_cast<int>(summary_.domains.size())) {
      refuse("domains.bin", "document " + std::to_string(i) + ": domain = " + std::to_string(domain(i)) +
                                ", but corpus.json names " + std::to_string(summary_.domains.size()));
    }
  }
}

std::vector<std::string> Corpus::domain_names() const {
  std::vector<std::string> names;
  for (const DomainCount& domain : summary_.domains) names.push_back(domain.name);
  return names;
}

int Corpus::domain(std::int64_t document) const {
  BALLAST_ASSERT(document >= 0 && document < num_documents(), "document of the corpus");
  std::uint16_t index = 0;
  std::memcpy(&index, domains_.bytes().data() + 2 * document, sizeof index);
  return index;
}

std::vector<Tokens> Corpus::lengths() const {
  std::vector<Tokens> lengths(static_cast<std::size_t>(num_documents()));
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = length(static_cast<std::int64_t>(i));
  return lengths;
}

std::vector<int> Corpus::domains() const {
  std::vector<int> domains(static_cast<std::size_t>(num_documents()));
  for (std::size_t i = 0; i < domains.size(); ++i) domains[i] = domain(static_cast<std::int64_t>(i));
  return domains;
}

std::vector<std::int64_t> Corpus::read(std::int64_t document, TokenRange range) const {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(range.size()));
  read(document, range, tokens);
  return tokens;
}

}  // namespace ballast
