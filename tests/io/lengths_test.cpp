// Every form of document lengths that users have, and one clear line for what is none.
#include "ballast/io/lengths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "ballast/base/error.h"
#include "ballast/io/corpus.h"

namespace ballast {
namespace {

std::vector<Tokens> lengths_in(std::string_view text) { return parse_lengths(text, "text").lengths; }

std::string complaint(std::string_view text) {
  try {
    parse_lengths(text, "text");
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

const std::vector<Tokens> kThree{7, 4096, 1};

TEST(Lengths, ReadOneNumberALine) {
  EXPECT_EQ(lengths_in("7\n4096\n1\n"), kThree);
  EXPECT_EQ(lengths_in("7\r\n 4K\r\n\r\n1"), kThree) << "other line ends, blank lines, K for 1,024";
}

TEST(Lengths, ReadAJsonList) {
  EXPECT_EQ(lengths_in("[7, 4096,1]"), kThree);
  EXPECT_EQ(lengths_in("[7, {\"tokens\": 4096}, 1]\n"), kThree);
}

TEST(Lengths, ReadJsonLinesOfObjectsAndNumbers) {
  const DocumentLengths read =
      parse_lengths("{\"length\": 7, \"domain\": \"code\"}\n4096\n{\"tokens\": 1, \"domain\": \"code\"}\n", "text");
  EXPECT_EQ(read.lengths, kThree);
  EXPECT_EQ(read.domain_names, (std::vector<std::string>{"code", "all"}));
  EXPECT_EQ(read.domains, (std::vector<int>{0, 1, 0}));
}

TEST(Lengths, ReadCsvByItsHeader) {
  const DocumentLengths read = parse_lengths("name,domain,length\n\"a, b\",code,7\nc,prose,4096\nd,code,1\n", "text");
  EXPECT_EQ(read.lengths, kThree);
  EXPECT_EQ(read.domain_names, (std::vector<std::string>{"code", "prose"}));
  EXPECT_EQ(lengths_in("tokens\n7\n4096\n1\n"), kThree);
}

TEST(Lengths, SampleAHistogramByItsSeed) {
  const std::string_view histogram = R"x({"[0,64)": 0.5, "[1024,1536)": 0.25, "[4096,65536)": 0.25, "[7,9)": 0})x";
  const DocumentLengths first = parse_lengths(histogram, "text", {.documents = 4000, .seed = 5});
  EXPECT_TRUE(first.sampled);
  ASSERT_EQ(first.lengths.size(), 4000u);
  EXPECT_EQ(first.lengths, parse_lengths(histogram, "text", {.documents = 4000, .seed = 5}).lengths);
  EXPECT_NE(first.lengths, parse_lengths(histogram, "text", {.documents = 4000, .seed = 6}).lengths);
  const auto share = [&](Tokens begin, Tokens end) {
    return static_cast<double>(std::count_if(first.lengths.begin(), first.lengths.end(),
                                             [&](Tokens length) { return begin <= length && length < end; })) /
           4000;
  };
  EXPECT_NEAR(share(0, 64), 0.5, 0.05);
  EXPECT_NEAR(share(1024, 1536), 0.25, 0.05);
  EXPECT_NEAR(share(4096, 65536), 0.25, 0.05);
  EXPECT_NEAR(share(4096, 16384), 0.125, 0.04) << "two of its four octaves";
}

TEST(Lengths, ComeFromACorpusFolder) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ballast_lengths_" + std::to_string(::getpid()));
  {
    CorpusWriter writer(folder, {}, /*replace=*/true);
    writer.add(std::vector<std::uint32_t>{1, 2, 3}, "code");
    writer.add(std::vector<std::uint32_t>{4}, "prose");
    writer.commit({});
  }
  const DocumentLengths read = read_lengths(folder.string());
  std::filesystem::remove_all(folder);
  EXPECT_EQ(read.lengths, (std::vector<Tokens>{3, 1}));
  EXPECT_EQ(read.domain_names, (std::vector<std::string>{"code", "prose"}));
}

TEST(Lengths, RefuseWhatIsNoLengthNamingItsPlace) {
  EXPECT_EQ(complaint(""), "text: is empty: it must hold document lengths");
  EXPECT_EQ(complaint("\n \n"), "text: is empty: it must hold document lengths");
  EXPECT_EQ(complaint("7\n-5\n"),
            "text line 2: length = \"-5\" must be a whole number of tokens from 1 to 2^31, such as 4096 or 16K");
  EXPECT_EQ(complaint("7\nseven\n"),
            "text line 2: length = \"seven\" must be a whole number of tokens from 1 to 2^31, such as 4096 or 16K");
  EXPECT_NE(complaint("7\n0\n").find("line 2"), std::string::npos) << "an empty document";
  EXPECT_NE(complaint("[7, 0]").find("[1]"), std::string::npos) << complaint("[7, 0]");
  EXPECT_NE(complaint("2147483649\n").find("2^31"), std::string::npos);
  EXPECT_NE(complaint("7.5\n").find("\"7.5\""), std::string::npos);
  EXPECT_NE(complaint("99999999999999999999\n").find("line 1"), std::string::npos);
  EXPECT_EQ(complaint("[]"), "text: holds no document length");
  EXPECT_NE(complaint("[1, -2]").find("[1]"), std::string::npos) << complaint("[1, -2]");
  EXPECT_NE(complaint("[1, 2").find("text"), std::string::npos) << complaint("[1, 2");
  EXPECT_NE(complaint("[1,]").find("text"), std::string::npos);
  EXPECT_NE(complaint("{\"length\": 7}\n{\"lenght\": 7}\n").find("line 2"), std::string::npos);
  EXPECT_NE(complaint("{\"length\": \"7\"}\n").find("length"), std::string::npos);
  EXPECT_EQ(complaint("a,b\n1,2\n"),
            "text line 1: the header of a CSV must name a column \"length\" or \"tokens\", but has a, b");
  EXPECT_NE(complaint("domain,length\ncode\n").find("line 2"), std::string::npos);
  EXPECT_NE(complaint(R"x({"[8,4)": 1})x").find("\"[8,4)\""), std::string::npos);
  EXPECT_NE(complaint(R"x({"[0,4)": -1})x").find("share"), std::string::npos);
  EXPECT_NE(complaint(R"x({"[0,4)": 0})x").find("sum"), std::string::npos);
  EXPECT_THROW(read_lengths("no/such/file.jsonl"), UserError);
}

RC_GTEST_PROP(Lengths, AreTheSameInEveryForm, ()) {
  const auto lengths =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<Tokens>>(rc::gen::inRange<Tokens>(1, 1L << 31)));
  std::string lines, list = "[", objects, csv = "length\n";
  for (const Tokens length : lengths) {
    const std::string number = std::to_string(length);
    lines += number + "\n";
    list += (list.size() > 1 ? ", " : "") + number;
    objects += "{\"length\": " + number + "}\n";
    csv += number + "\n";
  }
  for (const std::string& text : {lines, list + "]", objects, csv}) RC_ASSERT(lengths_in(text) == lengths);
}

}  // namespace
}  // namespace ballast
