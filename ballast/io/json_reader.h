// Reads values out of a parsed JSON document and names the place of whatever is not as expected: every error is a
// UserError such as `plan.jsonl line 3: micro_batches[0][1].documents[2]: must be a list of 7 entries, not 6`.
// For the .cpp files of io/ and cli/ only; everyone else takes values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/spec/parallel_dims.h"

namespace ballast {

// Tokens and bytes read from files stay below this, so that no sum of a step can overflow.
inline constexpr std::int64_t kLargestCount = std::int64_t{1} << 48;

// `where` opens the message: a file, and its line where it has lines. Throws UserError with the column.
nlohmann::json parse_json(std::string_view text, std::string_view where);

// A view: the parsed document and `where` must outlive it.
class JsonReader {
 public:
  // `path` is the value's place inside the document, empty for the whole.
  JsonReader(const nlohmann::json& value, std::string_view where, std::string path = {})
      : value_(&value), where_(where), path_(std::move(path)) {}

  // REQUIRES nothing: each refuses a value of another type.
  JsonReader operator[](std::string_view key) const;           // of an object; the key must be there
  std::optional<JsonReader> find(std::string_view key) const;  // of an object
  std::vector<JsonReader> items() const;                       // of a list
  std::vector<std::int64_t> integers(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                     std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  int small_integer(int low = 0, int high = std::numeric_limits<int>::max()) const;
  Tokens tokens() const { return integer(0, kLargestCount); }
  double number() const;
  bool boolean() const;
  std::string text() const;

  // Refuses keys other than these, naming the nearest.
  void expect_keys(std::initializer_list<const char*> keys) const;
  // Refuses a list of another length.
  void expect_size(std::size_t size) const;
  // Refuses a `version` other than this program's.
  void expect_version(int version) const;

  const nlohmann::json& value() const { return *value_; }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  const nlohmann::json* value_;
  std::string_view where_;
  std::string path_;
};

// {"dp": 2, "pp": 1, "cp": 4}, as plans and timelines write it.
ParallelDims read_dims(const JsonReader& reader);

}  // namespace ballast
