// Emulated clusters read from files, those that come with Ballast among them.
#include "ballast/io/emulation_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ballast/io/device_profile_json.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

const std::string kGood =
    "name = \"two\"\ndevice = \"d.json\"\nmodel = \"llama-7b\"\ntoken_scale = 8\ndilation = 10.5\nnodes = 2\n"
    "ranks_per_node = 4\ncards_per_node = 2\ncard_bits_per_second = 2e8\ncard_latency_seconds = 1e-4\n"
    "node_bytes_per_second = 1e9\nnode_latency_seconds = 1e-5\n";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  return text.replace(text.find(from), from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    require_valid(emulation_from_toml(text, "emu.toml").violations(), "emu.toml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Emulation, ReadsEveryOneThatComesWithBallastAndItsDevice) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(BALLAST_PROFILES) / "emulated")) {
    const EmulationSpec emulation = read_emulation(entry.path());
    EXPECT_NO_THROW(read_device_profile(emulation.device)) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(Emulation, StatesCardsThatDiffer) {
  EXPECT_EQ(complaint(kGood), "");
  EXPECT_EQ(emulation_from_toml(kGood + "card_rates = [1e8, 2e8]\n", "emu.toml").card_rates,
            (std::vector<double>{1e8, 2e8}));
}

TEST(Emulation, IsRefusedWithTheKeyThatIsWrong) {
  EXPECT_THAT(complaint(with("cards_per_node = 2", "cards_per_node = 0")), HasSubstr("a node needs a network card"));
  EXPECT_THAT(complaint(with("cards_per_node = 2", "cards_per_node = 3")), HasSubstr("must divide ranks_per_node, 4"));
  EXPECT_THAT(complaint(with("llama-7b", "lama-7b")), HasSubstr("did you mean \"llama-7b\"?"));
  EXPECT_THAT(complaint(with("nodes = 2", "nodez = 2")), HasSubstr("did you mean \"nodes\"?"));
  EXPECT_THAT(complaint(with("dilation = 10.5", "dilation = 0")), HasSubstr("dilation: must be over 0"));
  EXPECT_THAT(complaint(kGood + "card_efficiency = 1.1\n"), HasSubstr("card_efficiency: must be 1 or less"));
  EXPECT_THAT(complaint(with("2e8", "\"fast\"")), HasSubstr("card_bits_per_second: must be a number"));
  EXPECT_THAT(complaint(kGood + "card_rates = [1e8]\n"), HasSubstr("1 rates for 2 cards"));
  EXPECT_THAT(complaint(kGood + "card_rates = []\n"), HasSubstr("card_rates: 0 rates for 2 cards of a node; leave"));
}

}  // namespace
}  // namespace ballast
