#include "ballast/base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace ballast {

void require_valid(const Violations& violations, std::string_view where) {
  if (!violations.empty()) throw UserError(std::string(where) + ": " + violations.front());
}

std::string nearest_name(std::string_view misspelt, const std::vector<std::string>& names) {
  std::string best;
  std::size_t best_distance = misspelt.size() / 2 + 1;
  for (const std::string& name : names) {
    std::vector<std::size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < misspelt.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < name.size(); ++j) {
        const std::size_t substitute = diagonal + (misspelt[i] == name[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({substitute, row[j] + 1, diagonal + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& names, std::string_view separator) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += separator;
    text += name;
  }
  return text;
}

void assertion_failed(const char* condition, const char* file, int line, std::string_view why) {
  std::fprintf(stderr, "ballast: internal error at %s:%d: %.*s (%s)\n", file, line, static_cast<int>(why.size()),
               why.data(), condition);
  std::abort();
}

}  // namespace ballast
