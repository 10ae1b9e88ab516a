// Tells text from anything else, and mends text that is nearly UTF-8.
#pragma once

#include <cstdint>
#include <string>

namespace ballast {

// Replaces every maximal run of bytes that is not UTF-8 (overlong forms and surrogates included) by U+FFFD, as browsers
// do, and returns how many there were. Valid text is left untouched, at the cost of reading it once.
std::int64_t repair_utf8(std::string& text);

}  // namespace ballast
