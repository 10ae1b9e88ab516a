// A whole file, mapped read-only. It may be larger than memory: pages come as they are touched. Movable; safe to read
// from any number of threads. A file that another process shortens while it is mapped kills the reader (SIGBUS), as
// with any mapping: our writers never shorten a file, they rename a new one into place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace ballast {

class MappedFile {
 public:
  // Throws UserError naming the path and the system's reason. An empty file gives an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ballast
