#include "ballast/io/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "ballast/base/error.h"
#include "ballast/io/mapped_file.h"

namespace ballast {

Checksum checksum(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Checksum checksum(std::string_view bytes) { return checksum(std::as_bytes(std::span(bytes))); }

ChecksumStream::ChecksumStream() : state_(XXH3_createState()) {
  BALLAST_ASSERT(state_ != nullptr, "memory for a checksum");
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}

ChecksumStream::~ChecksumStream() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void ChecksumStream::add(std::string_view bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

Checksum ChecksumStream::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {hash.high64, hash.low64};
}

Checksum checksum_of_file(const std::filesystem::path& path) { return checksum(MappedFile(path).bytes()); }

std::string to_string(const Checksum& checksum) { return fmt::format("{:016x}{:016x}", checksum.high, checksum.low); }

}  // namespace ballast
