#include "ballast/io/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/io/scratch_folder.h"
#include "tests/io/user_error.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::ScratchFolder;
using ::testing::UnorderedElementsAre;
using testing::user_error;

namespace fs = std::filesystem;

// "domain:text" of all that comes.
std::vector<std::string> all(TextSource& source) {
  std::vector<std::string> found;
  while (const auto text = source.next()) found.push_back(text->domain + ":" + text->bytes);
  return found;
}

std::vector<std::string> texts_of(const std::vector<fs::path>& paths, const std::vector<StatedDomain>& stated = {},
                                  const TextSelection& selection = {}) {
  TextSource source(paths, stated, selection);
  return all(source);
}

TEST(TextSource, ReadsAFolderInTheOrderOfItsNames) {
  const ScratchFolder folder;
  folder.write("news/b.txt", "b");
  folder.write("news/a/z.md", "az");
  folder.write("news/a/B.md", "aB");
  folder.write("news/c", "c");
  EXPECT_THAT(texts_of({folder / "news"}), ElementsAre("news:aB", "news:az", "news:b", "news:c"));
}

TEST(TextSource, ReadsInputsInTheOrderGiven) {
  const ScratchFolder folder;
  folder.write("z/1.txt", "z");
  folder.write("a/1.txt", "a");
  EXPECT_THAT(texts_of({folder / "z", folder / "a/1.txt"}), ElementsAre("z:z", "a:a"));
}

TEST(TextSource, ReadsADocumentALineOfJsonl) {
  const ScratchFolder folder;
  const auto file =
      folder.write("mail.jsonl",
                   "{\"text\":\"one\"}\n\n  \r\n{\"domain\":\"law\",\"text\":\"t\\u00e9\",\"id\":3}\r\n{\"text\":\"no "
                   "end of line\"}");
  EXPECT_THAT(texts_of({file}), ElementsAre("mail:one", "law:t\xc3\xa9", "mail:no end of line"));
}

TEST(TextSource, ReadsJsonlInsideAFolderUnderTheFoldersName) {
  const ScratchFolder folder;
  folder.write("news/m.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\",\"domain\":\"law\"}\n");
  EXPECT_THAT(texts_of({folder / "news"}), ElementsAre("news:one", "law:two"));
}

TEST(TextSource, NamesFileAndLineOfBadJsonl) {
  const ScratchFolder folder;
  const auto error_of = [&](const std::string& line) {
    const auto file = folder.write("m.jsonl", "{\"text\":\"fine\"}\n" + line + "\n");
    return user_error([&] { texts_of({file}); });
  };
  EXPECT_THAT(error_of("{\"text\":"), HasSubstr("m.jsonl:2: not valid JSON"));
  EXPECT_THAT(error_of("{\"text\":\"\xff\"}"), HasSubstr("m.jsonl:2: not valid JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("m.jsonl:2: not an object with the key text"));
  EXPECT_THAT(error_of("{\"body\":\"x\"}"), HasSubstr("m.jsonl:2: not an object with the key text"));
  EXPECT_THAT(error_of("{\"text\":7}"), HasSubstr("m.jsonl:2: text is not a string"));
  EXPECT_THAT(error_of("{\"text\":\"x\",\"domain\":null}"), HasSubstr("m.jsonl:2: domain is not a string"));
}

TEST(TextSource, SurvivesAnyDamageToJsonl) {
  const ScratchFolder folder;
  const std::string good = "{\"text\":\"one\",\"domain\":\"law\"}\n{\"text\":\"tw\\u00f6\"}\n";
  rc::check([&] {
    std::string bytes = good;
    for (int flips = *rc::gen::inRange(0, 4); flips > 0; --flips) {
      bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    }
    bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    const auto file = folder.write("m.jsonl", bytes);
    std::vector<std::string> texts;
    const std::string error = user_error([&] { texts = texts_of({file}); });
    if (!error.empty()) RC_ASSERT(error.find("m.jsonl:") != std::string::npos);
    RC_ASSERT(texts.size() <= bytes.size());
  });
}

TEST(TextSource, TakesTheInnermostStatedDomain) {
  const ScratchFolder folder;
  folder.write("src/a.cc", "a");
  folder.write("src/test/b.cc", "b");
  folder.write("src/test/deep/c.cc", "c");
  folder.write("src/test/m.jsonl", "{\"text\":\"m\",\"domain\":\"its own\"}");
  EXPECT_THAT(texts_of({folder / "src"}, {{"tests", folder / "src/test"}, {"deep", folder / "src/test/deep"}}),
              ElementsAre("src:a", "tests:b", "deep:c", "tests:m"));
}

TEST(TextSource, ReadsAStatedPathThatNoInputHolds) {
  const ScratchFolder folder;
  folder.write("src/a.cc", "a");
  folder.write("src/test/b.cc", "b");
  folder.write("book.txt", "book");
  EXPECT_THAT(texts_of({folder / "book.txt"}, {{"tests", folder / "src/test"}, {"code", folder / "src"}}),
              ElementsAre(folder.path().filename().string() + ":book", "code:a", "tests:b"));
}

TEST(TextSource, RefusesInputsThatWouldBeReadTwice) {
  const ScratchFolder folder;
  folder.write("src/a.cc", "a");
  EXPECT_THAT(user_error([&] { texts_of({folder / "src", folder / "src/a.cc"}); }), HasSubstr("would be read twice"));
  EXPECT_THAT(user_error([&] { texts_of({folder / "src/a.cc", folder / "src"}); }), HasSubstr("would be read twice"));
  EXPECT_THAT(user_error([&] { texts_of({folder / "src", folder / "./src/"}); }), HasSubstr("would be read twice"));
  EXPECT_THAT(user_error([&] {
                texts_of({folder / "src/a.cc"}, {{"code", folder / "src"}});
              }),
              HasSubstr("read already"));
}

TEST(TextSource, DoesNotTakeALikeNamedNeighbourForAPartOfAFolder) {
  const ScratchFolder folder;
  folder.write("src/a", "a");
  folder.write("src2/b", "b");
  EXPECT_THAT(texts_of({folder / "src", folder / "src2"}), ElementsAre("src:a", "src2:b"));
}

TEST(TextSource, NamesAMissingInput) {
  const ScratchFolder folder;
  EXPECT_THAT(user_error([&] { texts_of({folder / "none"}); }), HasSubstr("none: cannot be read: No such file"));
}

TEST(TextSource, PassesOverWhatIsNoTextAndSaysWhy) {
  const ScratchFolder folder;
  folder.write("d/empty", "");
  folder.write("d/image", std::string("\x89PNG\0\0", 6));
  folder.write("d/late", std::string(100000, 'x') + '\0');
  folder.write("d/latin", "\xe9\xe8\xea");
  folder.write("d/.git/config", "hidden");
  folder.write("d/text", "text");
  fs::create_symlink(folder / "d/text", folder / "d/link");
  fs::create_directory_symlink(folder.path(), folder / "d/loop");
  TextSource source({folder / "d"}, {}, {});
  EXPECT_THAT(all(source), ElementsAre("d:text"));
  EXPECT_THAT(source.skipped(), UnorderedElementsAre(Pair("empty", 1), Pair("binary", 2), Pair("not_utf8", 1),
                                                     Pair("hidden", 1), Pair("link", 2)));
}

TEST(TextSource, FollowsALinkThatIsGivenItself) {
  const ScratchFolder folder;
  folder.write("real/a", "a");
  fs::create_directory_symlink(folder / "real", folder / "link");
  EXPECT_THAT(texts_of({folder / "link"}), ElementsAre("real:a"));
}

TEST(TextSource, MendsTextThatIsNearlyUtf8) {
  const ScratchFolder folder;
  folder.write("d/a", std::string(200, 'x') + "\xe9");
  TextSource source({folder / "d"}, {}, {});
  EXPECT_THAT(all(source), ElementsAre("d:" + std::string(200, 'x') + "\xef\xbf\xbd"));
  EXPECT_EQ(source.repaired(), 1);
}

TEST(TextSource, LeavesOutDuplicatesAndShortTexts) {
  const ScratchFolder folder;
  folder.write("d/a", "same");
  folder.write("d/b", "same");
  folder.write("d/c", "abc");
  folder.write("e.jsonl", "{\"text\":\"same\"}\n{\"text\":\"other\"}\n");
  TextSource source({folder / "d", folder / "e.jsonl"}, {},
                    {.include = {}, .exclude = {}, .min_bytes = 4, .dedup = true});
  EXPECT_THAT(all(source), ElementsAre("d:same", "e:other"));
  EXPECT_THAT(source.skipped(), UnorderedElementsAre(Pair("duplicate", 2), Pair("short", 1)));
}

TEST(TextSource, LeavesOutEmptyTextsWhateverTheMinimum) {
  const ScratchFolder folder;
  const auto file = folder.write("e.jsonl", "{\"text\":\"\"}\n");
  EXPECT_THAT(texts_of({file}, {}, {.include = {}, .exclude = {}, .min_bytes = 0}), ElementsAre());
}

TEST(TextSource, SelectsFilesOfFoldersByPattern) {
  const ScratchFolder folder;
  folder.write("d/a.py", "a");
  folder.write("d/b.h", "b");
  folder.write("d/gen/ops/c.py", "c");
  folder.write("d/ops/e.py", "e");
  folder.write("given.txt", "given");
  TextSource source({folder / "d", folder / "given.txt"}, {}, {.include = {"*.py"}, .exclude = {"gen/ops"}});
  EXPECT_THAT(all(source), ElementsAre("d:a", "d:e", folder.path().filename().string() + ":given"));
  EXPECT_THAT(source.skipped(), ElementsAre(Pair("excluded", 2)));
}

}  // namespace
}  // namespace ballast
