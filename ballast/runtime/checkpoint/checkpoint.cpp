#include "ballast/runtime/checkpoint/checkpoint.h"

#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "ballast/io/atomic_file.h"
#include "ballast/io/checkpoint_json.h"
#include "ballast/io/checksum.h"
#include "ballast/io/safetensors.h"

namespace ballast {

namespace {

namespace fs = std::filesystem;

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "F64";
    case at::kFloat:
      return "F32";
    case at::kLong:
      return "I64";
    default:
      break;
  }
  BALLAST_ASSERT(false, "a checkpoint holds float64, float32 and int64 tensors");
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Runs `work` on this rank, then learns whether any rank failed: then all throw, the failed ones their own error.
void all_or_none(Communicator& world, const char* what, const std::function<void()>& work) {
  std::string own;
  try {
    work();
  } catch (const std::exception& error) {
    own = error.what();
  }
  at::Tensor failed = at::tensor({own.empty() ? 0 : world.rank() + 1}, at::kLong);
  world.all_reduce(failed, ReduceOp::max);
  if (!own.empty()) throw RunError(own);
  if (const auto rank = failed.item<std::int64_t>(); rank > 0) {
    // Not an error of its own, however early it ends: the failed rank's is the one to read.
    throw CommunicationError(fmt::format("{} failed on rank {} of {}", what, rank - 1, world.size()),
                             {static_cast<int>(rank - 1)}, false);
  }
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:06d}", step); }
std::string tensors_name(int rank) { return fmt::format("rank-{:05d}.safetensors", rank); }
std::string part_name(int rank) { return fmt::format("rank-{:05d}.json", rank); }

void write_tensors(const fs::path& folder, const std::vector<NamedTensor>& tensors, int rank) {
  if (tensors.empty()) return;
  std::vector<TensorView> views;
  std::vector<CheckpointTensor> listed;
  for (const NamedTensor& named : tensors) {
    BALLAST_ASSERT(named.tensor.is_contiguous(), named.name);
    const std::string dtype = dtype_name(named.tensor.scalar_type());
    const std::span<const std::byte> bytes = bytes_of(named.tensor);
    views.push_back({named.name, dtype, named.tensor.sizes().vec(), bytes});
    listed.push_back({named.name, tensors_name(rank), dtype, named.tensor.sizes().vec(), to_string(checksum(bytes))});
  }
  write_safetensors(folder / tensors_name(rank), views);
  write_file_atomically(folder / part_name(rank), to_json(listed));
}

void remove_older(const fs::path& folder, int keep) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i) fs::remove_all(found[i]);
}

}  // namespace

void save_checkpoint(const fs::path& folder, CheckpointManifest manifest, const std::vector<NamedTensor>& tensors,
                     Communicator& world, int keep) {
  const fs::path final_path = folder / checkpoint_name(manifest.step);
  const fs::path aside = folder / (checkpoint_name(manifest.step).insert(0, ".") + ".partial");
  all_or_none(world, "making the checkpoint's folder", [&] {
    if (world.rank() != 0) return;
    fs::remove_all(aside);
    fs::create_directories(aside);
  });
  all_or_none(world, "writing the checkpoint", [&] { write_tensors(aside, tensors, world.rank()); });
  all_or_none(world, "completing the checkpoint", [&] {
    if (world.rank() != 0) return;
    for (int rank = 0; rank < world.size(); ++rank) {
      const fs::path part = aside / part_name(rank);
      if (!fs::exists(part)) continue;
      for (CheckpointTensor& tensor : checkpoint_tensors_from_json(read_file(part), part.string())) {
        manifest.tensors.push_back(std::move(tensor));
      }
      fs::remove(part);
    }
    require_valid(manifest.violations(), (aside / "manifest.json").string());
    write_file_atomically(aside / "manifest.json", to_json(manifest));
    fs::remove_all(final_path);
    fs::rename(aside, final_path);
    sync_folder(folder);
    remove_older(folder, keep);
  });
}

fs::path newest_checkpoint(const fs::path& folder) {
  fs::path newest;
  if (!fs::is_directory(folder)) return newest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && fs::exists(entry.path() / "manifest.json") &&
        (newest.empty() || name > newest.filename().string())) {
      newest = entry.path();
    }
  }
  return newest;
}

CheckpointManifest read_checkpoint_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  CheckpointManifest manifest = checkpoint_manifest_from_json(read_file(path), path.string());
  require_valid(manifest.violations(), path.string());
  return manifest;
}

void load_checkpoint(const fs::path& checkpoint, const CheckpointManifest& manifest,
                     const std::vector<NamedTensor>& tensors) {
  std::map<std::string, const CheckpointTensor*> listed;
  for (const CheckpointTensor& tensor : manifest.tensors) listed[tensor.name] = &tensor;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files;
  for (const NamedTensor& named : tensors) {
    const std::string what = (checkpoint / "manifest.json").string() + ": tensor " + named.name;
    const auto entry = listed.find(named.name);
    if (entry == listed.end()) throw UserError(what + " is not in the checkpoint: it is of another model");
    const CheckpointTensor& from = *entry->second;
    if (from.shape != named.tensor.sizes().vec() || from.dtype != dtype_name(named.tensor.scalar_type())) {
      throw UserError(fmt::format("{} is {} [{}] there and {} [{}] in this run: it is of another model", what,
                                  from.dtype, fmt::join(from.shape, ", "), dtype_name(named.tensor.scalar_type()),
                                  fmt::join(named.tensor.sizes().vec(), ", ")));
    }
    std::unique_ptr<SafetensorsFile>& file = files[from.file];
    if (!file) file = std::make_unique<SafetensorsFile>(checkpoint / from.file);
    const std::span<const std::byte> bytes = file->at(named.name).bytes;
    if (bytes.size() != named.tensor.nbytes() || to_string(checksum(bytes)) != from.checksum) {
      throw UserError(fmt::format("{}: tensor {} does not match its checksum: the file has been damaged",
                                  (checkpoint / from.file).string(), named.name));
    }
    std::memcpy(named.tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  }
}

}  // namespace ballast
