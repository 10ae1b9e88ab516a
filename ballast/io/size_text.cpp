#include "ballast/io/size_text.h"

#include <charconv>

namespace ballast {

std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  std::int64_t unit = 1;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix == "K" || suffix == "k") {
    unit = 1 << 10;
  } else if (suffix == "M" || suffix == "m") {
    unit = 1 << 20;
  } else if (suffix == "G" || suffix == "g") {
    unit = 1 << 30;
  } else if (!suffix.empty()) {
    return std::nullopt;
  }
  if (value > (std::int64_t{1} << 62) / unit) return std::nullopt;
  return value * unit;
}

}  // namespace ballast
