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
  // Edit distance with neighbours swapped counting once (optimal string alignment): "wbl" is near "wlb".
  std::string best;
  std::size_t best_distance = misspelt.size() / 2 + 1;
  for (const std::string& name : names) {
    std::vector<std::vector<std::size_t>> rows(misspelt.size() + 1, std::vector<std::size_t>(name.size() + 1));
    std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= misspelt.size(); ++i) {
      rows[i][0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t differs = misspelt[i - 1] == name[j - 1] ? 0 : 1;
        rows[i][j] = std::min({rows[i - 1][j - 1] + differs, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
        if (i > 1 && j > 1 && misspelt[i - 1] == name[j - 2] && misspelt[i - 2] == name[j - 1]) {
          rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
      }
    }
    if (rows.back().back() < best_distance) {
      best_distance = rows.back().back();
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
