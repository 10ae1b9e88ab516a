// Clusters and device profiles read from files, those that come with Ballast among them.
#include "ballast/io/cluster_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ballast/io/device_profile_json.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kProfiles = std::filesystem::path(BALLAST_PROFILES);

template <class Read>
std::string complaint(const Read& read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Cluster, ReadsEveryClusterThatComesWithBallastAndItsDevice) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kProfiles / "clusters")) {
    const ClusterSpec cluster = read_cluster(entry.path());
    const DeviceProfile device = read_device_profile(cluster.device);
    EXPECT_FALSE(device.sources.empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 2);
}

TEST(Cluster, IsRefusedWithTheKeyThatIsWrong) {
  const std::string good =
      "name = \"c\"\ndevice = \"d.json\"\nmemory_bytes = 1\n"
      "[[tier]]\nname = \"t\"\ngpus = 0\nbytes_per_second = 1e9\nlatency_seconds = 1e-6\n";
  EXPECT_EQ(cluster_from_toml(good, "c.toml").violations(), Violations{});
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return complaint([&] { cluster_from_toml(text, "c.toml"); });
  };
  EXPECT_EQ(refusal("memory_bytes", "memory_byte"),
            "c.toml: key \"memory_byte\" is unknown; did you mean \"memory_bytes\"?");
  EXPECT_EQ(refusal("memory_bytes = 1\n", ""), "c.toml: memory_bytes is missing");
  EXPECT_EQ(refusal("gpus = 0", "gpus = \"all\""), "c.toml: tier 1: gpus: must be a whole number");
  EXPECT_THAT(refusal("name = \"c\"", "name ="), HasSubstr("c.toml:1"));
  EXPECT_EQ(complaint([] { cluster_from_toml("name = \"c\"\ndevice = \"d\"\nmemory_bytes = 1\n", "c.toml"); }),
            "c.toml: [[tier]] is missing: name at least one");
}

TEST(DeviceProfile, IsRefusedWithTheKeyThatIsWrong) {
  EXPECT_THAT(complaint([] { device_profile_from_json("{", "d.json"); }), HasSubstr("d.json"));
  EXPECT_THAT(complaint([] { device_profile_from_json("{\"version\": 2}", "d.json"); }), HasSubstr("version"));
  EXPECT_THAT(complaint([] { device_profile_from_json(R"({"version": 1, "devise": "x"})", "d.json"); }),
              HasSubstr("devise"));
}

}  // namespace
}  // namespace ballast
