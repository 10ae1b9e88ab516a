#include "ballast/io/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "tests/io/scratch_folder.h"
#include "tests/io/user_error.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using testing::ScratchFolder;
using testing::user_error;

using Documents = std::vector<std::vector<std::uint32_t>>;

void write_documents(const std::filesystem::path& prefix, const Documents& documents, TokenType type) {
  TokenFileWriter writer(prefix, type);
  for (const auto& document : documents) {
    writer.append(document);
    writer.end_document();
  }
  writer.commit();
}

std::vector<std::int64_t> read_document(const TokenFile& file, std::int64_t document, std::int64_t vocab = 1 << 30) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(file.length(document)));
  file.read(document, {0, file.length(document)}, vocab, tokens);
  return tokens;
}

template <class T>
void put(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

TEST(TokenFile, WritesTheBytesMegatronReads) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1, 2, 3}, {}, {500}}, TokenType::uint16);
  const char bin[] = {1, 0, 2, 0, 3, 0, static_cast<char>(0xf4), 1};
  EXPECT_EQ(read_file(folder / "t.bin"), std::string(bin, sizeof bin));

  std::string idx("MMIDIDX\0\0", 9);
  const auto add = [&idx](auto value) { idx.append(reinterpret_cast<const char*>(&value), sizeof value); };
  add(std::uint64_t{1});  // version
  add(std::uint8_t{8});   // uint16
  add(std::uint64_t{3});  // sequences
  add(std::uint64_t{4});  // document boundaries
  for (const std::int32_t length : {3, 0, 1}) add(length);
  for (const std::int64_t pointer : {0, 6, 6}) add(pointer);
  for (const std::int64_t boundary : {0, 1, 2, 3}) add(boundary);
  EXPECT_EQ(read_file(folder / "t.idx"), idx);
}

TEST(TokenFile, TakesTheTypeMegatronTakesForAVocabulary) {
  EXPECT_EQ(token_type_for(256), TokenType::uint16);
  EXPECT_EQ(token_type_for(65499), TokenType::uint16);
  EXPECT_EQ(token_type_for(65500), TokenType::int32);
}

TEST(TokenFile, GivesBackAnyDocumentsAndAnyPartOfThem) {
  rc::check([](const Documents& drawn, bool wide) {
    const TokenType type = wide ? TokenType::int32 : TokenType::uint16;
    Documents documents = drawn;
    for (auto& document : documents) {
      for (std::uint32_t& token : document) token &= wide ? 0x3fffffffU : 0xffffU;
    }
    const ScratchFolder folder;
    write_documents(folder / "t", documents, type);
    const TokenFile file(folder / "t");
    RC_ASSERT(file.num_documents() == static_cast<std::int64_t>(documents.size()));
    RC_ASSERT(file.type() == type);
    Tokens total = 0;
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const auto id = static_cast<std::int64_t>(i);
      const std::vector<std::int64_t> whole(documents[i].begin(), documents[i].end());
      RC_ASSERT(read_document(file, id) == whole);
      const Tokens begin = *rc::gen::inRange<Tokens>(0, file.length(id) + 1);
      const Tokens end = *rc::gen::inRange<Tokens>(begin, file.length(id) + 1);
      std::vector<std::int64_t> part(static_cast<std::size_t>(end - begin));
      file.read(id, {begin, end}, 1 << 30, part);
      RC_ASSERT(part == std::vector<std::int64_t>(whole.begin() + begin, whole.begin() + end));
      total += file.length(id);
    }
    RC_ASSERT(file.num_tokens() == total);
  });
}

TEST(TokenFile, JoinsTheSequencesOfADocument) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1, 2}, {3}, {4, 5}}, TokenType::uint16);
  std::string idx = read_file(folder / "t.idx");
  idx.resize(idx.size() - 8);     // three boundaries instead of four:
  put<std::int64_t>(idx, 26, 3);  // 0, 2, 3
  put<std::int64_t>(idx, idx.size() - 16, 2);
  put<std::int64_t>(idx, idx.size() - 8, 3);
  folder.write("t.idx", idx);
  const TokenFile file(folder / "t");
  ASSERT_EQ(file.num_documents(), 2);
  EXPECT_EQ(read_document(file, 0), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(read_document(file, 1), (std::vector<std::int64_t>{4, 5}));
}

TEST(TokenFile, LeavesNothingBehindWhenItIsNotCommitted) {
  const ScratchFolder folder;
  {
    TokenFileWriter writer(folder / "t", TokenType::uint16);
    writer.append(std::vector<std::uint32_t>{1, 2});
    writer.end_document();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TokenFile, NamesATokenOutsideTheVocabulary) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1}, {2, 300}}, TokenType::uint16);
  const TokenFile file(folder / "t");
  const std::string error = user_error([&] { read_document(file, 1, 256); });
  EXPECT_THAT(error, HasSubstr("t.bin: document 1, position 1: token 300 is outside the vocabulary [0, 256)"));
  EXPECT_EQ(read_document(file, 0, 256), std::vector<std::int64_t>{1});
}

TEST(TokenFile, NamesANegativeToken) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1}}, TokenType::int32);
  folder.write("t.bin", std::string(4, '\xff'));
  EXPECT_THAT(user_error([&] { read_document(TokenFile(folder / "t"), 0); }), HasSubstr("token -1"));
}

// A good pair, one change, and what the refusal says.
struct Damage {
  const char* name;
  void (*change)(std::string& bin, std::string& idx);
  const char* says;
};

class DamagedTokenFile : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedTokenFile, IsRefusedWithTheFileAndTheReason) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1, 2}, {3}}, TokenType::uint16);
  std::string bin = read_file(folder / "t.bin");
  std::string idx = read_file(folder / "t.idx");
  GetParam().change(bin, idx);
  folder.write("t.bin", bin);
  folder.write("t.idx", idx);
  EXPECT_THAT(user_error([&] { TokenFile file(folder / "t"); }), HasSubstr(GetParam().says));
}

// Offsets: 9 version, 17 type, 18 sequences, 26 boundaries, 34 lengths, 42 pointers, 58 boundaries.
INSTANTIATE_TEST_SUITE_P(
    All, DamagedTokenFile,
    ::testing::Values(
        Damage{"WrongMagic", [](std::string&, std::string& idx) { idx[0] = 'X'; }, "t.idx: not an index"},
        Damage{"EmptyIndex", [](std::string&, std::string& idx) { idx.clear(); }, "t.idx: not an index"},
        Damage{"CutHeader", [](std::string&, std::string& idx) { idx.resize(20); }, "t.idx: truncated: 20 bytes"},
        Damage{"Version", [](std::string&, std::string& idx) { put<std::uint64_t>(idx, 9, 2); }, "t.idx: version = 2"},
        Damage{"Type", [](std::string&, std::string& idx) { idx[17] = 6; }, "t.idx: token type code = 6"},
        Damage{"CutIndex", [](std::string&, std::string& idx) { idx.pop_back(); }, "t.idx: 81 bytes do not hold"},
        Damage{"LongIndex", [](std::string&, std::string& idx) { idx += '\0'; }, "t.idx: 83 bytes do not hold"},
        Damage{"AbsurdCount", [](std::string&, std::string& idx) { put<std::int64_t>(idx, 18, INT64_MAX); },
               "t.idx: 82 bytes do not hold"},
        Damage{"NegativeCount", [](std::string&, std::string& idx) { put<std::int64_t>(idx, 18, -1); },
               "t.idx: 82 bytes do not hold"},
        Damage{"NegativeLength", [](std::string&, std::string& idx) { put<std::int32_t>(idx, 34, -2); },
               "t.idx: sequence 0: length = -2"},
        Damage{"LengthsDoNotAddUp", [](std::string&, std::string& idx) { put<std::int32_t>(idx, 34, 1); },
               "t.idx: sequence 1: begins at byte 4, but the lengths before it add up to 2"},
        Damage{"LastLength", [](std::string&, std::string& idx) { put<std::int32_t>(idx, 38, 9); },
               "t.bin: 6 bytes, but the lengths in t.idx add up to 22"},
        Damage{"FirstBoundary", [](std::string&, std::string& idx) { put<std::int64_t>(idx, 58, 1); },
               "t.idx: document boundary 0 = 1"},
        Damage{"BoundariesCross", [](std::string&, std::string& idx) { put<std::int64_t>(idx, 66, 7); },
               "t.idx: document boundary 1 = 7"},
        Damage{"LastBoundary", [](std::string&, std::string& idx) { put<std::int64_t>(idx, 74, 1); },
               "t.idx: the last document ends at sequence 1 of 2"},
        Damage{"CutBin", [](std::string& bin, std::string&) { bin.pop_back(); }, "t.bin: 5 bytes"},
        Damage{"EmptyBin", [](std::string& bin, std::string&) { bin.clear(); }, "t.bin: 0 bytes"}),
    [](const auto& damage) { return damage.param.name; });

TEST(TokenFile, NamesAMissingFile) {
  const ScratchFolder folder;
  EXPECT_THAT(user_error([&] { TokenFile file(folder / "t"); }), HasSubstr("t.bin: cannot be read: No such file"));
  write_documents(folder / "t", {{1}}, TokenType::uint16);
  std::filesystem::remove(folder / "t.idx");
  EXPECT_THAT(user_error([&] { TokenFile file(folder / "t"); }), HasSubstr("t.idx: cannot be read: No such file"));
}

TEST(TokenFile, SurvivesAnyDamageToItsIndex) {
  const ScratchFolder folder;
  write_documents(folder / "t", {{1, 2, 3, 4}, {}, {5}, {6, 7}}, TokenType::uint16);
  const std::string good = read_file(folder / "t.idx");
  rc::check([&] {
    std::string idx = good;
    for (int flips = *rc::gen::inRange(0, 4); flips > 0; --flips) {
      idx[*rc::gen::inRange<std::size_t>(0, idx.size())] ^= static_cast<char>(1 << *rc::gen::inRange(0, 8));
    }
    if (*rc::gen::inRange(0, 4) == 0) idx.resize(*rc::gen::inRange<std::size_t>(0, idx.size() + 1));
    folder.write("t.idx", idx);
    const std::string error = user_error([&] {
      const TokenFile file(folder / "t");
      Tokens total = 0;  // what it accepts, it can also read
      for (std::int64_t i = 0; i < file.num_documents(); ++i) {
        total += file.length(i);
        user_error([&] { read_document(file, i, 8); });
      }
      RC_ASSERT(total == file.num_tokens());
    });
    if (!error.empty())
      RC_ASSERT(error.find("t.idx: ") != std::string::npos || error.find("t.bin: ") != std::string::npos);
  });
}

}  // namespace
}  // namespace ballast
