// A 64-bit digest of bytes (FNV-1a), for comparing plans between ranks. Not a checksum of stored data: checkpoints use
// a stronger one.
#pragma once

#include <cstdint>
#include <string_view>

namespace ballast {

std::uint64_t digest(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325ULL);

}  // namespace ballast
