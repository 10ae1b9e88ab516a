#include "ballast/io/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "ballast/io/mapped_file.h"

namespace ballast {

Checksum checksum(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Checksum checksum(std::string_view bytes) { return checksum(std::as_bytes(std::span(bytes))); }

Checksum checksum_of_file(const std::filesystem::path& path) { return checksum(MappedFile(path).bytes()); }

std::string to_string(const Checksum& checksum) { return fmt::format("{:016x}{:016x}", checksum.high, checksum.low); }

}  // namespace ballast
