// Safetensors, Hugging Face's file of named tensors: a JSON header, then the raw bytes. Here as plain buffers; what
// they mean is the caller's. Written aside and renamed; read by mapping, so a file may be larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"
#include "ballast/io/checksum.h"
#include "ballast/io/mapped_file.h"

namespace ballast {

// A tensor in row-major order, little-endian. The bytes belong to someone else: the caller when written, the file when
// read.
struct TensorView {
  std::string name;
  std::string dtype;  // F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 or BOOL
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  // Name not empty and not __metadata__, dtype known, no negative extent, bytes as many as the shape needs.
  Violations violations() const;
};

// Bytes of one element, 0 where the dtype is unknown.
Bytes dtype_size(std::string_view dtype);

using TensorMetadata = std::map<std::string, std::string>;

// Writes and syncs the file; tensors of the widest dtype come first, otherwise in the order given, so all are aligned.
// Returns the checksum of what should now be in the file, computed from memory.
// Throws RunError (disk full), UserError (cannot be written). REQUIRES: names differ, every tensor's violations()
// empty.
Checksum write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                           const TensorMetadata& metadata = {});

class SafetensorsFile {
 public:
  // Reads and checks the header: every tensor inside the file, none overlapping, no byte unaccounted for.
  // Throws UserError naming the file and what is wrong. Bytes are not checksummed: see checksum_of_file().
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<TensorView>& tensors() const { return tensors_; }  // in the order of their bytes
  const TensorMetadata& metadata() const { return metadata_; }

  // Throws UserError naming the file, the tensor and the nearest name there is.
  const TensorView& at(const std::string& name) const;
  bool contains(const std::string& name) const { return indices_.contains(name); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string, std::size_t> indices_;
  TensorMetadata metadata_;
};

}  // namespace ballast
