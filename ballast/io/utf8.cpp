#include "ballast/io/utf8.h"

#include <cstring>
#include <string_view>

namespace ballast {

namespace {

struct Sequence {
  std::size_t size = 1;  // bytes of it, or of the longest valid beginning where it is none
  bool valid = false;
};

// The table of well-formed byte sequences, Unicode 15, table 3-7.
Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return {1, false};
  for (std::size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return {i, false};
  }
  return {size, true};
}

// Position of the first invalid sequence at or after `from`, or the end. Skips ASCII eight bytes at a time.
std::size_t first_invalid(std::string_view text, std::size_t from) {
  std::size_t at = from;
  while (at < text.size()) {
    std::uint64_t eight = 0;
    while (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) != 0) break;
      at += sizeof eight;
    }
    if (at == text.size()) break;
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.valid) return at;
    at += sequence.size;
  }
  return text.size();
}

}  // namespace

std::int64_t repair_utf8(std::string& text) {
  std::size_t bad = first_invalid(text, 0);
  if (bad == text.size()) return 0;
  std::int64_t replaced = 0;
  std::string repaired;
  std::size_t copied = 0;
  while (bad < text.size()) {
    repaired.append(text, copied, bad - copied);
    repaired += "\xef\xbf\xbd";
    ++replaced;
    copied = bad + sequence_at(text, bad).size;
    bad = first_invalid(text, copied);
  }
  repaired.append(text, copied);
  text = std::move(repaired);
  return replaced;
}

}  // namespace ballast
