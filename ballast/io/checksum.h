// XXH3-128 (the xxHash library): finds flipped bits and tells equal content from different. Not against an adversary.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace ballast {

struct Checksum {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Checksum&) const = default;
};

Checksum checksum(std::span<const std::byte> bytes);
Checksum checksum(std::string_view bytes);

// Of bytes that come in parts.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;

  void add(std::string_view bytes);
  Checksum value() const;  // of all added so far

 private:
  void* state_;  // of the library, whose header stays out of this one
};

// Of a whole file, which may be larger than memory. Throws UserError naming the path.
Checksum checksum_of_file(const std::filesystem::path& path);

// 32 hexadecimal digits, as `xxhsum -H2` prints them.
std::string to_string(const Checksum& checksum);

}  // namespace ballast

template <>
struct std::hash<ballast::Checksum> {
  std::size_t operator()(const ballast::Checksum& checksum) const noexcept { return checksum.low; }
};
