#include "ballast/runtime/profiler/profile_key.h"

#include <gtest/gtest.h>

namespace ballast {
namespace {

TEST(ProfileKey, IsTheSameTwiceAndNamesEveryPart) {
  const ProfileKey key = key_of_this_machine(ModelSpec{}, Precision::float32, 1);
  EXPECT_EQ(key, key_of_this_machine(ModelSpec{}, Precision::float32, 1));
  EXPECT_EQ(key.kernel_build, "torch 2.13.0");
  EXPECT_EQ(key.precision, "float32");
  EXPECT_EQ(key.mapping, to_string(ModelSpec{}) + ", threads 1");
  EXPECT_NE(key.device.find(", "), std::string::npos) << key.device;
}

TEST(ProfileKey, DiffersByPrecisionThreadsAndModelOnly) {
  const ProfileKey key = key_of_this_machine(ModelSpec{}, Precision::float32, 1);
  EXPECT_EQ(differences(key, key_of_this_machine(ModelSpec{}, Precision::bfloat16, 1)).size(), 1U);
  EXPECT_EQ(differences(key, key_of_this_machine(ModelSpec{}, Precision::float32, 2)).size(), 1U);
  EXPECT_EQ(differences(key, key_of_this_machine({.num_layers = 3}, Precision::float32, 1)).size(), 1U);
}

}  // namespace
}  // namespace ballast
