// Counts as people write them: 4096, 16K, 2M. K is 1,024 and M is 1,048,576, as for windows and bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ballast {

// Empty where the text is not a count (a sign, a fraction, another suffix, over 2^62).
std::optional<std::int64_t> parse_size(std::string_view text);

}  // namespace ballast
