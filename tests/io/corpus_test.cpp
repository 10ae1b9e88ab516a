#include "ballast/io/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/io/scratch_folder.h"
#include "tests/io/user_error.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::user_error;

using Ids = std::vector<std::uint32_t>;

void write_corpus(const std::filesystem::path& folder, CorpusSummary summary = {}, bool replace = false) {
  CorpusWriter writer(folder, std::move(summary), replace);
  writer.add(Ids{104, 105}, "news");
  writer.add(Ids{1, 2, 3}, "code");
  writer.add(Ids{7}, "news");
  writer.commit({{"empty", 4}});
}

TEST(Corpus, GivesBackWhatWasWritten) {
  const ScratchFolder folder;
  write_corpus(folder / "c", {.sources = {"a.txt"}});
  const Corpus corpus(folder / "c");
  EXPECT_EQ(corpus.lengths(), (std::vector<Tokens>{2, 3, 1}));
  EXPECT_EQ(corpus.domains(), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(corpus.domain_names(), (std::vector<std::string>{"news", "code"}));
  EXPECT_EQ(corpus.read(1, {1, 3}), (std::vector<std::int64_t>{2, 3}));
  const CorpusSummary expected{.documents = 3,
                               .tokens = 6,
                               .longest_tokens = 3,
                               .domains = {{"news", 2, 3}, {"code", 1, 3}},
                               .sources = {"a.txt"},
                               .skipped = {{"empty", 4}}};
  EXPECT_EQ(corpus.summary(), expected);
}

TEST(Corpus, EndsEachDocumentWithTheTokenForIt) {
  const ScratchFolder folder;
  write_corpus(folder / "c", {.vocab_size = 257, .append_eod = true, .eod = 256});
  const Corpus corpus(folder / "c");
  EXPECT_EQ(corpus.read(0, {0, 3}), (std::vector<std::int64_t>{104, 105, 256}));
  EXPECT_EQ(corpus.summary().tokens, 9);
  EXPECT_EQ(corpus.summary().longest_tokens, 4);
}

TEST(Corpus, KeepsTokensOfALargeVocabularyWhole) {
  const ScratchFolder folder;
  CorpusWriter writer(folder / "c", {.vocab_size = 130000}, false);
  writer.add(Ids{129999, 65536}, "all");
  writer.commit({});
  EXPECT_EQ(Corpus(folder / "c").read(0, {0, 2}), (std::vector<std::int64_t>{129999, 65536}));
}

TEST(Corpus, SummaryKeepsItsValueThroughText) {
  rc::check([](std::int64_t documents, const std::vector<std::string>& drawn, bool eod) {
    CorpusSummary summary{.documents = documents & 0xffffffff, .tokens = 12, .append_eod = eod, .eod = eod ? 9 : -1};
    for (const std::string& name : drawn) {
      std::string printable;
      for (const char c : name) printable += static_cast<char>(32 + (static_cast<unsigned char>(c) & 63));
      summary.domains.push_back({printable, 1, 2});
      summary.sources.push_back(printable);
      summary.skipped[printable] = 3;
    }
    RC_ASSERT(corpus_summary_from_json(to_json(summary), "x") == summary);
  });
}

TEST(Corpus, RefusesASummaryByItsKey) {
  const std::string good = to_json({});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return user_error([&] { corpus_summary_from_json(text, "corpus.json"); });
  };
  EXPECT_THAT(with("\"documents\": 0", "\"documents\": -1"), HasSubstr("corpus.json: documents: -1 is too small"));
  EXPECT_THAT(with("\"tokens\": 0", "\"token\": 0"), HasSubstr("corpus.json: key \"tokens\" is missing"));
  EXPECT_THAT(with("\"append_eod\": false", "\"append_eod\": 0"), HasSubstr("append_eod: must be true or false"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 9"), HasSubstr("version"));
  EXPECT_THAT(with("{", "["), HasSubstr("corpus.json: is not JSON"));
  EXPECT_THAT(user_error([] { corpus_summary_from_json("[]", "corpus.json"); }), HasSubstr("must be an object"));
}

TEST(Corpus, IsNotReplacedUnlessAskedFor) {
  const ScratchFolder folder;
  write_corpus(folder / "c");
  EXPECT_THAT(user_error([&] { write_corpus(folder / "c"); }),
              HasSubstr("holds a corpus already; --force replaces it"));
  folder.write("c/NOTES.md", "the user's own");
  write_corpus(folder / "c", {.vocab_size = 300}, true);
  EXPECT_EQ(Corpus(folder / "c").summary().vocab_size, 300);
  EXPECT_TRUE(std::filesystem::exists(folder / "c/NOTES.md"));
}

TEST(Corpus, LeavesTheOldOneWhereItsReplacementFails) {
  const ScratchFolder folder;
  write_corpus(folder / "c");
  {
    CorpusWriter writer(folder / "c", {}, true);
    writer.add(Ids{1}, "all");
  }
  EXPECT_EQ(Corpus(folder / "c").num_documents(), 3);
}

TEST(Corpus, LeavesNoFolderBehindWhenItIsNotCommitted) {
  const ScratchFolder folder;
  { CorpusWriter writer(folder / "c", {}, false); }
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
}

TEST(Corpus, RefusesATokenOutsideTheVocabularyWhenWriting) {
  const ScratchFolder folder;
  CorpusWriter writer(folder / "c", {.tokenizer = "tok.json", .vocab_size = 100}, false);
  EXPECT_EQ(user_error([&] {
              writer.add(Ids{99, 100}, "all");
            }),
            "tok.json: gave token 100, outside its vocabulary [0, 100)");
}

TEST(Corpus, RefusesAFolderThatIsNone) {
  const ScratchFolder folder;
  EXPECT_THAT(user_error([&] { Corpus corpus(folder / "none"); }), HasSubstr("none: no such folder"));
  EXPECT_THAT(user_error([&] { Corpus corpus(folder.path()); }), HasSubstr("no corpus.json in it"));
}

TEST(Corpus, RefusesFilesThatDisagree) {
  const ScratchFolder folder;
  write_corpus(folder / "c");
  const std::string json = read_file(folder / "c/corpus.json");
  const auto open = [&] { Corpus corpus(folder / "c"); };

  folder.write("c/domains.bin", std::string(5, '\0'));
  EXPECT_THAT(user_error(open), HasSubstr("domains.bin: 5 bytes, but 3 documents need two bytes each"));
  folder.write("c/domains.bin", std::string("\0\0\2\0\0\0", 6));
  EXPECT_THAT(user_error(open), HasSubstr("domains.bin: document 1: domain = 2, but corpus.json names 2"));
  folder.write("c/domains.bin", std::string(6, '\0'));
  EXPECT_EQ(user_error(open), "");

  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    text.replace(text.find(from), from.size(), to);
    folder.write("c/corpus.json", text);
    return user_error(open);
  };
  EXPECT_THAT(with("\"documents\": 3", "\"documents\": 4"), HasSubstr("documents = 4, but tokens.idx has 3"));
  EXPECT_THAT(with("\"tokens\": 6", "\"tokens\": 5"), HasSubstr("tokens = 5, but tokens.bin has 6"));
}

}  // namespace
}  // namespace ballast
