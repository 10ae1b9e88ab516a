#include "ballast/io/checksum.h"

#include <gtest/gtest.h>

#include "ballast/base/error.h"
#include "tests/io/scratch_folder.h"

namespace ballast {
namespace {

// Of xxHash's own tool: `printf hello | xxhsum -H2`.
TEST(Checksum, IsTheOneOfXxhsum) {
  EXPECT_EQ(to_string(checksum(std::string_view("hello"))), "b5e9c1ad071b3e7fc779cfaa5e523818");
  EXPECT_EQ(to_string(checksum(std::string_view(""))), "99aa06d3014798d86001c324468d497f");
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const testing::ScratchFolder folder;
  EXPECT_EQ(checksum_of_file(folder.write("f", "hello")), checksum(std::string_view("hello")));
  EXPECT_EQ(checksum_of_file(folder.write("empty", "")), checksum(std::string_view("")));
  EXPECT_THROW(checksum_of_file(folder / "none"), UserError);
}

TEST(Checksum, OfPartsIsThatOfTheWhole) {
  ChecksumStream parts;
  for (const char* part : {"he", "", "llo"}) parts.add(part);
  EXPECT_EQ(parts.value(), checksum(std::string_view("hello")));
  parts.add(std::string(5000, '!'));
  EXPECT_EQ(parts.value(), checksum("hello" + std::string(5000, '!')));
}

TEST(Checksum, DiffersByOneBit) {
  std::string bytes(1000, 'x');
  const Checksum before = checksum(bytes);
  bytes[500] ^= 1;
  EXPECT_NE(checksum(bytes), before);
}

}  // namespace
}  // namespace ballast
