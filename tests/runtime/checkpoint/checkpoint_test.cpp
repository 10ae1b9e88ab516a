#include "ballast/runtime/checkpoint/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "ballast/io/atomic_file.h"
#include "ballast/runtime/comm/thread_ranks.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("ballast-checkpoint-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<NamedTensor> tensors_of(int rank) {
    const std::string prefix = "model/rank" + std::to_string(rank) + ".";
    return {{prefix + "a", at::arange(6, at::kFloat).view({2, 3}) + rank}, {prefix + "b", at::arange(3, at::kDouble)}};
  }

  static CheckpointManifest manifest_at(std::int64_t step) {
    return {.step = step,
            .model = "m",
            .precision = "float32",
            .layout = "dp 1",
            .corpus = "c",
            .seed = 1,
            .source_state = "{\"held\":[1]}",
            .tensors = {}};
  }

  // Rank 2 of 3 owns nothing, as every rank of dp > 0 does.
  void save(std::int64_t step, int keep = 2) {
    run_thread_mesh({.dp = 3}, [&](Mesh& mesh) {
      save_checkpoint(folder_, manifest_at(step), mesh.rank < 2 ? tensors_of(mesh.rank) : std::vector<NamedTensor>{},
                      *mesh.world, keep);
    });
  }

  std::string load_error() {
    try {
      const fs::path newest = newest_checkpoint(folder_);
      std::vector<NamedTensor> into{{"model/rank1.a", at::zeros({2, 3})}};
      load_checkpoint(newest, read_checkpoint_manifest(newest), into);
    } catch (const UserError& error) {
      return error.what();
    }
    return "loaded";
  }

  fs::path folder_;
};

TEST_F(Checkpoint, ReturnsWhatEveryRankWrote) {
  save(10);
  const fs::path newest = newest_checkpoint(folder_);
  const CheckpointManifest manifest = read_checkpoint_manifest(newest);
  EXPECT_EQ(newest.filename(), "step-000010");
  EXPECT_EQ(manifest.source_state, "{\"held\":[1]}");
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<NamedTensor> into;
    for (const NamedTensor& named : tensors_of(rank)) into.push_back({named.name, at::zeros_like(named.tensor)});
    load_checkpoint(newest, manifest, into);
    for (std::size_t i = 0; i < into.size(); ++i) EXPECT_TRUE(into[i].tensor.equal(tensors_of(rank)[i].tensor));
  }
}

TEST_F(Checkpoint, KeepsTheNewestAndNothingHalfDone) {
  for (const std::int64_t step : {1, 2, 3}) save(step, 2);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"step-000002", "step-000003"}));
}

TEST_F(Checkpoint, IsAbsentUntilItIsComplete) {
  save(1);
  fs::create_directories(folder_ / ".step-000002.partial");  // a crash while writing
  fs::create_directories(folder_ / "step-000003");           // a folder without a manifest is none
  EXPECT_EQ(newest_checkpoint(folder_).filename(), "step-000001");
}

TEST_F(Checkpoint, NamesTheTensorWithAFlippedBit) {
  save(1);
  const fs::path file = folder_ / "step-000001" / "rank-00001.safetensors";
  std::string bytes = read_file(file);
  const std::size_t header = 8 + static_cast<unsigned char>(bytes[0]) + 256U * static_cast<unsigned char>(bytes[1]);
  for (std::size_t i = header; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_NE(load_error().find("rank-00001.safetensors: tensor model/rank1.a does not match its checksum"),
            std::string::npos)
      << load_error();
}

TEST_F(Checkpoint, RefusesATruncatedFileAndABrokenManifest) {
  save(1);
  const fs::path file = folder_ / "step-000001" / "rank-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_NE(load_error().find("rank-00001.safetensors"), std::string::npos) << load_error();
  fs::resize_file(folder_ / "step-000001" / "manifest.json", 40);
  EXPECT_NE(load_error().find("manifest.json"), std::string::npos) << load_error();
}

TEST_F(Checkpoint, RefusesAnotherModel) {
  save(1);
  const fs::path newest = newest_checkpoint(folder_);
  const CheckpointManifest manifest = read_checkpoint_manifest(newest);
  EXPECT_THROW(load_checkpoint(newest, manifest, {{"model/rank1.a", at::zeros({3, 2})}}), UserError);
  EXPECT_THROW(load_checkpoint(newest, manifest, {{"model/rank9.a", at::zeros({2, 3})}}), UserError);
}

TEST_F(Checkpoint, FailsOnEveryRankWhereOneCannotWrite) {
  std::ofstream(folder_.string()) << "a file where the folder should be";
  int failed = 0;
  std::mutex mutex;
  run_thread_mesh({.dp = 3}, [&](Mesh& mesh) {
    try {
      save_checkpoint(folder_, manifest_at(1), tensors_of(mesh.rank), *mesh.world, 1);
    } catch (const RunError&) {
      const std::scoped_lock lock(mutex);
      ++failed;
    }
  });
  EXPECT_EQ(failed, 3);
}

}  // namespace
}  // namespace ballast
