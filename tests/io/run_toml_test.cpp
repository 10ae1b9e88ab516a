#include "ballast/io/run_toml.h"

#include <gtest/gtest.h>

#include "ballast/io/size_text.h"

namespace ballast {
namespace {

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    run_spec_from_toml(text, "run.toml", overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RunToml, ReadsEveryKeyItWrites) {
  RunSpec spec;
  spec.folder = "runs/a \"quoted\" name";
  spec.seed = 7;
  spec.corpus = "data/x";
  spec.model = *model_preset("llama-7b");
  spec.parallel = {.dp = 2, .pp = 4, .cp = 8};
  spec.schedule = {"interleaved", 2};
  spec.packing.queues = {4096, 8192};
  spec.packing.oversize = Oversize::split;
  spec.synthetic_cost = {{24576.0, 1.0}};
  spec.training.precision = Precision::bfloat16;
  spec.training.lr = 3e-4;
  spec.launch.timeout_seconds = 2.5;
  EXPECT_EQ(run_spec_from_toml(to_toml(spec), "run.toml"), spec);
}

TEST(RunToml, AcceptsSizesAsPeopleWriteThem) {
  const RunSpec spec = run_spec_from_toml("[packing]\nwindow = \"16K\"\nqueues = [\"4K\", 9000]\n", "run.toml");
  EXPECT_EQ(spec.packing.window, 16384);
  EXPECT_EQ(spec.packing.queues, (std::vector<Tokens>{4096, 9000}));
}

TEST(RunToml, OverridesAnyKey) {
  const RunSpec spec = run_spec_from_toml("[packing]\nwindow = 8\n", "run.toml",
                                          {"packing.window=16", "model.preset=llama-3b", "run.folder=a b"});
  EXPECT_EQ(spec.packing.window, 16);
  EXPECT_EQ(spec.model.hidden_dim, 3200);
  EXPECT_EQ(spec.folder, "a b");
}

TEST(RunToml, NamesTheNearestKeySectionAndValue) {
  EXPECT_EQ(refusal("[packing]\nwindw = 8\n"),
            "run.toml: key \"windw\" in [packing] is unknown; did you mean \"window\"?");
  EXPECT_EQ(refusal("[packin]\nwindow = 8\n"), "run.toml: section [packin] is unknown; did you mean \"packing\"?");
  EXPECT_EQ(refusal("[training]\nprecision = \"flaot32\"\n"),
            "run.toml: [training] precision = \"flaot32\": must be one of float64, float32, bfloat16; did you mean "
            "\"float32\"?");
  EXPECT_EQ(refusal("[model]\npreset = \"llama-8b\"\n").find("run.toml: [model] preset = \"llama-8b\": must be one of"),
            0U);
}

TEST(RunToml, SaysWhatAKeyTakes) {
  EXPECT_EQ(refusal("[parallel]\ndp = \"two\"\n"), "run.toml: [parallel] dp = \"two\": must be a whole number");
  EXPECT_EQ(refusal("[parallel]\ndp = 1.5\n"), "run.toml: [parallel] dp = 1.5: must be a whole number");
  EXPECT_EQ(refusal("[corpus]\nshuffle = 1\n"), "run.toml: [corpus] shuffle = 1: must be true or false");
  EXPECT_EQ(refusal("[run]\nseed = -1\n"), "run.toml: [run] seed = -1: must be a whole number of 0 or more");
  EXPECT_EQ(refusal("window = 8\n"),
            "run.toml: section [window] is unknown; valid: run, corpus, model, parallel, "
            "cluster, workload, schedule, packing, sharding, cost, training, launch, software, faults, storage, plan");
}

TEST(RunToml, ReadsFaultsStorageAndPlansAndLeavesThemOutWhereNothingIsAsked) {
  const RunSpec spec = run_spec_from_toml(
      "[faults]\nslow_gpus = [[3, 1.5]]\n[storage]\nbytes_per_second = 2e9\n[plan]\ngpus = 64\ntp = [1, 8]\n"
      "mappings = [\"tp-cp-dp-pp\"]\n",
      "run.toml");
  EXPECT_EQ(spec.faults.slow_gpus, (std::vector<std::vector<double>>{{3, 1.5}}));
  EXPECT_EQ(spec.storage.bytes_per_second, 2e9);
  EXPECT_EQ(spec.plan.tp, (std::vector<int>{1, 8}));
  EXPECT_EQ(run_spec_from_toml(to_toml(spec), "run.toml"), spec);
  EXPECT_EQ(to_toml(RunSpec{}).find("[plan]"), std::string::npos);
}

TEST(RunToml, NamesTheLineOfBrokenToml) { EXPECT_EQ(refusal("[run]\nseed = = 1\n").find("run.toml:2: "), 0U); }

TEST(RunToml, RefusesAnOverrideThatIsNone) {
  EXPECT_EQ(refusal("", {"window=3"}), "--set window=3: must be section.key=value");
  EXPECT_EQ(refusal("", {"packing.windw=3"}),
            "run.toml: key \"windw\" in [packing] is unknown; did you mean \"window\"?");
}

TEST(SizeText, KnowsSuffixesAndRefusesTheRest) {
  EXPECT_EQ(parse_size("128K"), 131072);
  EXPECT_EQ(parse_size("16M"), 16 << 20);
  EXPECT_EQ(parse_size("7"), 7);
  for (const char* bad : {"", "-1", "1.5K", "K", "12X", "9999999999999G", "1 K"}) EXPECT_FALSE(parse_size(bad)) << bad;
}

}  // namespace
}  // namespace ballast
