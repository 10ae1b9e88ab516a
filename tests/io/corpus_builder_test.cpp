#include "ballast/io/corpus_builder.h"

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

Corpus build(const std::filesystem::path& input, const std::filesystem::path& out, std::int64_t max_documents = 0) {
  TextSource texts({input}, {}, {});
  const auto tokenizer = byte_tokenizer(false);
  CorpusWriter writer(out, {}, false);
  build_corpus(texts, *tokenizer, writer, max_documents, [](const BuildProgress&) {});
  return Corpus(out);
}

TEST(CorpusBuilder, KeepsTheBytesOfAnyText) {
  rc::check([] {
    const ScratchFolder folder;
    std::vector<std::string> texts;
    for (int i = *rc::gen::inRange(1, 20); i > 0; --i) {
      texts.push_back(*rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
      folder.write("d/" + std::to_string(1000 + texts.size()), texts.back());
    }
    std::erase(texts, "");
    if (texts.empty()) return;
    const Corpus corpus = build(folder / "d", folder / "out");
    RC_ASSERT(corpus.num_documents() == static_cast<std::int64_t>(texts.size()));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto id = static_cast<std::int64_t>(i);
      const auto tokens = corpus.read(id, {0, corpus.length(id)});
      RC_ASSERT(std::string(tokens.begin(), tokens.end()) == texts[i]);
    }
  });
}

TEST(CorpusBuilder, WritesMoreThanABatch) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 1300; ++i) lines += "{\"text\":\"" + std::to_string(i) + "\"}\n";
  const Corpus corpus = build(folder.write("n.jsonl", lines), folder / "out");
  EXPECT_EQ(corpus.num_documents(), 1300);
  EXPECT_EQ(corpus.read(1299, {0, 4}), (std::vector<std::int64_t>{'1', '2', '9', '9'}));
}

TEST(CorpusBuilder, StopsAtTheNumberOfDocumentsAskedFor) {
  const ScratchFolder folder;
  const auto input = folder.write("n.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}\nnever reached\n");
  EXPECT_EQ(build(input, folder / "out", 2).num_documents(), 2);
}

TEST(CorpusBuilder, GivesTheSameBytesEachTime) {
  const ScratchFolder folder;
  folder.write("d/a/1", "one");
  folder.write("d/b/2", "two");
  build(folder / "d", folder / "first");
  build(folder / "d", folder / "second");
  for (const char* name : {"tokens.bin", "tokens.idx", "domains.bin", "corpus.json"}) {
    EXPECT_EQ(read_file(folder.path() / "first" / name), read_file(folder.path() / "second" / name)) << name;
  }
}

TEST(CorpusBuilder, LeavesNothingWhereThereIsNoText) {
  const ScratchFolder folder;
  folder.write("d/a", "");
  folder.write("d/b", std::string("\0", 1));
  EXPECT_EQ(user_error([&] { build(folder / "d", folder / "out"); }),
            "no text to build a corpus from (skipped: 1 binary, 1 empty)");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(CorpusBuilder, LeavesNothingWhereALineIsBad) {
  const ScratchFolder folder;
  const auto input = folder.write("n.jsonl", "{\"text\":\"a\"}\nbad\n");
  EXPECT_THAT(user_error([&] { build(input, folder / "out"); }), HasSubstr("n.jsonl:2"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace
}  // namespace ballast
