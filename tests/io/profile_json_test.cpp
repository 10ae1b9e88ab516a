#include "ballast/io/profile_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "ballast/io/atomic_file.h"

namespace ballast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HardwareProfile small_profile() {
  HardwareProfile profile;
  profile.key = {.device = "Some \"CPU\", avx2",
                 .kernel_build = "torch 2.13.0",
                 .precision = "float32",
                 .mapping = "layers 2, threads 1"};
  profile.measured_by = "ballast profile, 2026-01-01";
  profile.seconds_taken = 12.5;
  profile.attention = {{.queries = 128, .keys = 256, .causal = false, .forward = 1e-4, .backward = 3e-4}};
  profile.linear = {{.part = "layer", .tokens = 512, .forward = 0.01, .backward = 0.02}};
  profile.collectives = {{.operation = "all_gather", .ranks = 2, .bytes = 1 << 20, .seconds = 1.0 / 3}};
  profile.optimizer_seconds_per_parameter = 2e-9;
  profile.attention_block_overhead = 1.7e-5;
  return profile;
}

std::string refusal(const std::string& text) {
  try {
    hardware_profile_from_json(text, "profile.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

RC_GTEST_PROP(ProfileJson, RoundTripsEveryBitOfEveryTime, ()) {
  const auto seconds = rc::gen::map(rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 52),
                                    [](std::int64_t n) { return static_cast<double>(n) / 7e13; });
  HardwareProfile profile = small_profile();
  const int points = *rc::gen::inRange(0, 6);
  for (int i = 0; i < points; ++i) {
    profile.attention.push_back(
        {.queries = i + 1, .keys = 2 * i + 1, .causal = i % 2 == 0, .forward = *seconds, .backward = *seconds});
    profile.linear.push_back({.part = "head", .tokens = 1 << i, .forward = *seconds, .backward = *seconds});
    profile.collectives.push_back({.operation = "send", .ranks = 2 + i, .bytes = i, .seconds = *seconds});
  }
  profile.attention_block_overhead = *seconds;
  RC_ASSERT(hardware_profile_from_json(to_json(profile), "text") == profile);
}

TEST(ProfileJson, RefusesMalformedTextNamingWhereAndTheKey) {
  const std::string good = to_json(small_profile());
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal("{"), HasSubstr("profile.json: is not JSON"));
  EXPECT_THAT(refusal(replaced(good, "\"version\": 1", "\"version\": 2")),
              HasSubstr("profile.json: version: 2 is not known"));
  EXPECT_THAT(refusal(replaced(good, "\"device\"", "\"devise\"")),
              AllOf(HasSubstr("key: unknown key \"devise\""), HasSubstr("did you mean \"device\"?")));
  EXPECT_THAT(refusal(replaced(good, "\"queries\":128", "\"queries\":-1")),
              HasSubstr("attention[0].queries: -1 is too small"));
  EXPECT_THAT(refusal(replaced(good, "\"causal\":false", "\"causal\":0")),
              HasSubstr("attention[0].causal: must be true or false"));
  EXPECT_THAT(refusal(replaced(good, "\"part\":\"layer\"", "\"part\":3")),
              HasSubstr("linear[0].part: must be a string"));
}

TEST(ProfileJson, AFileWithAnImpossibleProfileIsRefused) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ballast_profile_" + std::to_string(::getpid()) + ".json");
  HardwareProfile profile = small_profile();
  write_file_atomically(path, to_json(profile));
  EXPECT_EQ(read_hardware_profile(path), profile);
  profile.linear[0].forward = -1;
  write_file_atomically(path, to_json(profile));
  try {
    read_hardware_profile(path);
    ADD_FAILURE() << "a negative time was read";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(path.string()), HasSubstr("linear layer at 512 tokens")));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ballast
