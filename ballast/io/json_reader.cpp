#include "ballast/io/json_reader.h"

#include <algorithm>

#include "ballast/base/error.h"

namespace ballast {

namespace {

// Values in messages are shortened: a message is one line.
std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view where) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw UserError(std::string(where) + ": is not JSON at byte " + std::to_string(error.byte) + " of " +
                    std::to_string(text.size()));
  } catch (const nlohmann::json::out_of_range&) {
    throw UserError(std::string(where) + ": is not JSON that can be read: a number in it is too large");
  }
}

void JsonReader::fail(std::string_view what) const {
  throw UserError(std::string(where_) + ": " + path_ + (path_.empty() ? "" : ": ") + std::string(what));
}

JsonReader JsonReader::operator[](std::string_view key) const {
  if (std::optional<JsonReader> found = find(key)) return *found;
  fail("key \"" + std::string(key) + "\" is missing");
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!value_->is_object()) fail("must be an object, not " + shown(*value_));
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  return JsonReader(*found, where_, path_ + (path_.empty() ? "" : ".") + std::string(key));
}

std::vector<JsonReader> JsonReader::items() const {
  if (!value_->is_array()) fail("must be a list, not " + shown(*value_));
  std::vector<JsonReader> readers;
  readers.reserve(value_->size());
  std::size_t index = 0;
  for (const nlohmann::json& item : *value_) {
    readers.emplace_back(item, where_, path_ + "[" + std::to_string(index++) + "]");
  }
  return readers;
}

std::vector<std::int64_t> JsonReader::integers(std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> values;
  for (const JsonReader& item : items()) values.push_back(item.integer(low, high));
  return values;
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  const bool too_large =
      value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value_->is_number_integer() || too_large) fail("must be a whole number, not " + shown(*value_));
  const auto number = value_->get<std::int64_t>();
  if (number < low) fail(std::to_string(number) + " is too small: " + std::to_string(low) + " or more");
  if (number > high) fail(std::to_string(number) + " is too large: " + std::to_string(high) + " or less");
  return number;
}

int JsonReader::small_integer(int low, int high) const { return static_cast<int>(integer(low, high)); }

double JsonReader::number() const {
  if (!value_->is_number()) fail("must be a number, not " + shown(*value_));
  return value_->get<double>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail("must be true or false, not " + shown(*value_));
  return value_->get<bool>();
}

std::string JsonReader::text() const {
  if (!value_->is_string()) fail("must be a string, not " + shown(*value_));
  return value_->get<std::string>();
}

void JsonReader::expect_keys(std::initializer_list<const char*> keys) const {
  if (!value_->is_object()) fail("must be an object, not " + shown(*value_));
  const std::vector<std::string> names(keys.begin(), keys.end());
  for (const auto& [key, inner] : value_->items()) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    const std::string near = nearest_name(key, names);
    fail("unknown key \"" + key + "\"; known are " + join(names) +
         (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

void JsonReader::expect_size(std::size_t size) const {
  if (!value_->is_array()) fail("must be a list, not " + shown(*value_));
  if (value_->size() != size) {
    fail("must be a list of " + std::to_string(size) + " entries, not " + std::to_string(value_->size()));
  }
}

void JsonReader::expect_version(int version) const {
  const std::int64_t found = (*this)["version"].integer();
  if (found != version) {
    (*this)["version"].fail(std::to_string(found) + " is not known: this program reads version " +
                            std::to_string(version));
  }
}

ParallelDims read_dims(const JsonReader& reader) {
  constexpr int kLargestDegree = 1 << 16;
  constexpr std::int64_t kLargestWorld = 1 << 20;
  reader.expect_keys({"dp", "pp", "cp"});
  const ParallelDims dims{.dp = reader["dp"].small_integer(1, kLargestDegree),
                          .pp = reader["pp"].small_integer(1, kLargestDegree),
                          .cp = reader["cp"].small_integer(1, kLargestDegree)};
  if (std::int64_t{dims.dp} * dims.pp > kLargestWorld / dims.cp) {
    reader.fail(to_string(dims) + " is more than " + std::to_string(kLargestWorld) + " ranks");
  }
  return dims;
}

}  // namespace ballast
