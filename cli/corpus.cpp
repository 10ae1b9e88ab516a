// ballast corpus build | info
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/io/corpus.h"
#include "ballast/io/corpus_builder.h"
#include "ballast/io/hugging_face_tokenizer.h"
#include "ballast/io/text_source.h"
#include "ballast/io/tokenizer.h"
#include "cli/verbs.h"

namespace ballast::cli {

namespace fs = std::filesystem;

namespace {

struct BuildOptions {
  std::vector<std::string> paths;
  std::string out;
  std::string tokenizer = "bytes";
  std::string python = default_python();
  std::string eod_token;
  bool append_eod = false;
  std::vector<std::string> domains;
  TextSelection selection;
  std::int64_t max_documents = 0;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

struct InfoOptions {
  std::string folder;
  bool verify = false;
  bool json = false;
};

volatile std::sig_atomic_t stop_requested = 0;

// One line on a terminal, rewritten at most five times a second; nothing anywhere else.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : shown_(!quiet && ::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

  void show(const BuildProgress& progress) {
    const auto now = Clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double megabytes = static_cast<double>(progress.text_bytes) / 1e6;
    fmt::print(stderr, "\r\x1b[K{} documents, {} tokens, {:.0f} MB, {:.1f} MB/s", progress.documents, progress.tokens,
               megabytes, megabytes / seconds);
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

StatedDomain parse_domain(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw UserError("--domain " + text + ": allowed is NAME=PATH");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::unique_ptr<Tokenizer> make_tokenizer(const BuildOptions& options) {
  if (options.tokenizer == "bytes") {
    if (!options.eod_token.empty()) throw UserError("--eod-token: the byte tokenizer has its own; leave it out");
    return byte_tokenizer(options.append_eod);
  }
  return hugging_face_tokenizer(options.tokenizer, options.python, options.eod_token);
}

struct LengthFigures {
  Tokens median = 0;
  double mean = 0;
  Tokens p90 = 0;
  Tokens p99 = 0;
};

LengthFigures length_figures(std::vector<Tokens> lengths) {
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  // Nearest rank: the smallest length that a share of the documents does not exceed.
  const auto percentile = [&](std::size_t percent) { return lengths[(lengths.size() * percent + 99) / 100 - 1]; };
  const Tokens total = std::accumulate(lengths.begin(), lengths.end(), Tokens{0});
  return {percentile(50), static_cast<double>(total) / static_cast<double>(lengths.size()), percentile(90),
          percentile(99)};
}

void print_corpus(const Corpus& corpus, bool json, std::int64_t repaired) {
  const CorpusSummary& summary = corpus.summary();
  const LengthFigures lengths = length_figures(corpus.lengths());
  if (json) {
    auto object = nlohmann::ordered_json::parse(to_json(summary));
    object["lengths"] = {{"median_tokens", lengths.median},
                         {"mean_tokens", lengths.mean},
                         {"p90_tokens", lengths.p90},
                         {"p99_tokens", lengths.p99}};
    if (repaired >= 0) object["repaired"] = repaired;
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("{}: {} documents, {} tokens ({}, vocabulary {}{})\n", corpus.folder().string(), summary.documents,
             summary.tokens, summary.tokenizer, summary.vocab_size,
             summary.append_eod ? fmt::format(", each ends with token {}", summary.eod) : "");
  fmt::print("length: median {}, mean {:.0f}, 90% {}, 99% {}, longest {} tokens\n", lengths.median, lengths.mean,
             lengths.p90, lengths.p99, summary.longest_tokens);
  std::size_t width = 6;
  for (const DomainCount& domain : summary.domains) width = std::max(width, domain.name.size());
  fmt::print("{:<{}}  {:>12}  {:>14}  {:>6}\n", "domain", width, "documents", "tokens", "share");
  for (const DomainCount& domain : summary.domains) {
    const double share = static_cast<double>(domain.tokens) / static_cast<double>(std::max<Tokens>(summary.tokens, 1));
    fmt::print("{:<{}}  {:>12}  {:>14}  {:>5.1f}%\n", domain.name, width, domain.documents, domain.tokens, 100 * share);
  }
  if (!summary.skipped.empty()) fmt::print("skipped: {}\n", describe_skipped(summary.skipped));
  if (repaired > 0) fmt::print("repaired: {} documents had bytes that are not UTF-8\n", repaired);
}

void build(const BuildOptions& options) {
  if (options.paths.empty() && options.domains.empty()) {
    throw UserError("corpus build: no PATHS given: text files, folders or .jsonl files to read");
  }
  std::vector<StatedDomain> stated;
  for (const std::string& domain : options.domains) stated.push_back(parse_domain(domain));
  TextSource texts({options.paths.begin(), options.paths.end()}, stated, options.selection);
  const fs::path out = fs::weakly_canonical(options.out);
  for (const fs::path& input : texts.inputs()) {
    if (lies_in(out, input))
      throw UserError("--out " + options.out + ": lies in " + input.string() + ", which is read");
  }
  if (is_corpus(out) && !options.force) {
    throw UserError("--out " + options.out + ": holds a corpus already; --force replaces it");
  }

  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(options);
  if (options.append_eod && tokenizer->eod() < 0) {
    throw UserError(options.tokenizer + ": no end-of-document token known; name one of its tokens with --eod-token");
  }
  CorpusSummary summary;
  summary.tokenizer = tokenizer->name();
  summary.vocab_size = tokenizer->vocab_size();
  summary.append_eod = options.append_eod;
  summary.eod = options.append_eod ? tokenizer->eod() : -1;
  for (const fs::path& input : texts.inputs()) summary.sources.push_back(input.string());

  {
    CorpusWriter writer(options.out, summary, options.force);
    ProgressLine line(options.quiet);
    const auto previous = std::signal(SIGINT, [](int) { stop_requested = 1; });
    build_corpus(texts, *tokenizer, writer, options.max_documents, [&](const BuildProgress& progress) {
      if (stop_requested != 0) throw RunError("stopped; " + options.out + " is as it was");
      line.show(progress);
    });
    std::signal(SIGINT, previous);
  }
  if (options.json || !options.quiet) print_corpus(Corpus(options.out), options.json, texts.repaired());
}

void info(const InfoOptions& options) {
  const Corpus corpus(options.folder);
  if (options.verify) {
    for (std::int64_t i = 0; i < corpus.num_documents(); ++i) corpus.read(i, {0, corpus.length(i)});
  }
  print_corpus(corpus, options.json, -1);
}

void add_build(CLI::App& corpus) {
  const auto options = std::make_shared<BuildOptions>();
  CLI::App* verb = corpus.add_subcommand("build", "Turn text into a corpus folder: tokens, lengths and domains.");
  verb->add_option(
      "PATHS", options->paths,
      "Text files (a document each), folders (every text file below) and .jsonl files (a document a line: text, "
      "optionally domain); - is JSONL on standard input");
  verb->add_option("--out", options->out, "Folder to write")->required()->type_name("DIR");
  verb->add_option("--tokenizer", options->tokenizer, "bytes, or a Hugging Face tokenizer.json")
      ->type_name("bytes|FILE")
      ->capture_default_str();
  verb->add_flag("--append-eod", options->append_eod, "End every document with the end-of-document token");
  verb->add_option("--eod-token", options->eod_token, "Text of that token, where the tokenizer.json has an unusual one")
      ->type_name("TOKEN");
  verb->add_option("--domain", options->domains,
                   "Domain of all texts at or below a path; the innermost holds. Reads it too")
      ->type_name("NAME=PATH");
  verb->add_option("--include", options->selection.include, "Of folders, take only files that match, such as '*.md'")
      ->type_name("PATTERN");
  verb->add_option("--exclude", options->selection.exclude, "Of folders, pass over files and folders that match")
      ->type_name("PATTERN");
  verb->add_flag("--dedup", options->selection.dedup, "Leave out texts whose content came before");
  verb->add_option("--min-bytes", options->selection.min_bytes, "Leave out shorter texts")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--max-documents", options->max_documents, "Stop after so many; 0 takes all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--python", options->python, "Python that has the tokenizers library")->type_name("FILE");
  verb->add_flag("--force", options->force, "Replace a corpus that DIR holds");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->add_flag("--quiet", options->quiet, "No progress and no summary");
  verb->footer("Example:\n  ballast corpus build docs notes.jsonl --domain code=src --dedup --out data/mine");
  verb->callback([options] { build(*options); });
}

void add_info(CLI::App& corpus) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* verb = corpus.add_subcommand("info", "Check a corpus folder and print what is in it.");
  verb->add_option("DIR", options->folder, "Folder that `ballast corpus build` made")->required();
  verb->add_flag("--verify", options->verify, "Read every token and check it against the vocabulary");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->footer("Example:\n  ballast corpus info data/mine");
  verb->callback([options] { info(*options); });
}

}  // namespace

void add_corpus(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("corpus", "Build a corpus from text, or look at one.");
  verb->require_subcommand(1);
  verb->footer("Example:\n  ballast corpus build docs --out data/docs");
  add_build(*verb);
  add_info(*verb);
}

}  // namespace ballast::cli
