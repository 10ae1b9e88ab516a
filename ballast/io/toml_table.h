// Small TOML files: a table whose keys are all known, read key by key, every fault said in one line.
#pragma once

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

inline toml::table parse_toml(std::string_view text, std::string_view where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
}

// One table, whose keys are all known beforehand.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string where, const std::vector<std::string>& keys)
      : table_(table), where_(std::move(where)) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
      const std::string near = nearest_name(name, keys);
      throw UserError(fmt::format("{}: key \"{}\" is unknown; {}", where_, name,
                                  near.empty() ? "valid: " + join(keys) : "did you mean \"" + near + "\"?"));
    }
  }

  std::string text(const char* key) const {
    const auto value = node(key).value<std::string>();
    if (!value) refuse(key, "a string");
    return *value;
  }
  double number(const char* key) const {
    if (!node(key).is_number()) refuse(key, "a number");
    return *node(key).value<double>();
  }
  std::vector<double> numbers(const char* key) const {  // empty where the key is not there
    std::vector<double> found;
    if (table_.get(key) == nullptr) return found;
    const toml::array* list = node(key).as_array();
    if (list == nullptr) refuse(key, "a list of numbers");
    for (const toml::node& value : *list) {
      if (!value.is_number()) refuse(key, "a list of numbers");
      found.push_back(*value.value<double>());
    }
    return found;
  }
  double number_or(const char* key, double otherwise) const {
    return table_.get(key) == nullptr ? otherwise : number(key);
  }
  // Empty where the key is not there.
  std::vector<std::vector<double>> pairs(const char* key) const {
    std::vector<std::vector<double>> found;
    if (table_.get(key) == nullptr) return found;
    const toml::array* list = node(key).as_array();
    if (list == nullptr) refuse(key, "a list of [bytes, share]");
    for (const toml::node& item : *list) {
      const toml::array* pair = item.as_array();
      if (pair == nullptr) refuse(key, "a list of [bytes, share]");
      std::vector<double>& values = found.emplace_back();
      for (const toml::node& value : *pair) {
        if (!value.is_number()) refuse(key, "a list of [bytes, share]");
        values.push_back(*value.value<double>());
      }
    }
    return found;
  }
  std::int64_t whole(const char* key) const {
    if (!node(key).is_integer()) refuse(key, "a whole number");
    return *node(key).value<std::int64_t>();
  }

 private:
  const toml::node& node(const char* key) const {
    const toml::node* found = table_.get(key);
    if (found == nullptr) throw UserError(fmt::format("{}: {} is missing", where_, key));
    return *found;
  }
  [[noreturn]] void refuse(const char* key, const char* allowed) const {
    throw UserError(fmt::format("{}: {}: must be {}", where_, key, allowed));
  }

  const toml::table& table_;
  std::string where_;
};

}  // namespace ballast
