#include <nlohmann/json.hpp>
#include <string>

#include "ballast/base/error.h"
#include "ballast/io/corpus.h"

namespace ballast {

using Json = nlohmann::ordered_json;

std::string to_json(const CorpusSummary& summary) {
  Json domains = Json::array();
  for (const DomainCount& domain : summary.domains) {
    domains.push_back({{"name", domain.name}, {"documents", domain.documents}, {"tokens", domain.tokens}});
  }
  Json skipped = Json::object();
  for (const auto& [reason, count] : summary.skipped) skipped[reason] = count;
  const Json json = {{"version", 1},
                     {"documents", summary.documents},
                     {"tokens", summary.tokens},
                     {"longest_tokens", summary.longest_tokens},
                     {"domains", domains},
                     {"tokenizer", summary.tokenizer},
                     {"vocab_size", summary.vocab_size},
                     {"append_eod", summary.append_eod},
                     {"eod", summary.eod},
                     {"sources", summary.sources},
                     {"skipped", skipped}};
  // A path may hold bytes that are not UTF-8; it is there for people to read, so it is written as well as can be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

// A value of a JSON object, or a UserError that names the key.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw UserError(where_ + ": not a JSON object");
  }

  const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw UserError(where_ + ": " + key + " is missing");
    return *found;
  }
  std::int64_t count(const char* key, std::int64_t least = 0) const {
    const Json& value = at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < least) {
      fail(key, "an integer of " + std::to_string(least) + " or more");
    }
    return value.get<std::int64_t>();
  }
  std::string text(const char* key) const {
    if (!at(key).is_string()) fail(key, "a string");
    return at(key).get<std::string>();
  }
  bool flag(const char* key) const {
    if (!at(key).is_boolean()) fail(key, "true or false");
    return at(key).get<bool>();
  }
  const Json& list(const char* key) const {
    if (!at(key).is_array()) fail(key, "a list");
    return at(key);
  }
  [[noreturn]] void fail(const char* key, const std::string& allowed) const {
    throw UserError(where_ + ": " + key + " = " + at(key).dump(-1, ' ', false, Json::error_handler_t::replace) +
                    ", allowed is " + allowed);
  }

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace

CorpusSummary corpus_summary_from_json(std::string_view text, std::string_view where) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw UserError(std::string(where) + ": not valid JSON");
  const Fields fields(json, std::string(where));
  if (fields.count("version") != 1) fields.fail("version", "1");

  CorpusSummary summary;
  summary.documents = fields.count("documents");
  summary.tokens = fields.count("tokens");
  summary.longest_tokens = fields.count("longest_tokens");
  for (const Json& entry : fields.list("domains")) {
    const Fields domain(entry, std::string(where) + ": domains");
    summary.domains.push_back({domain.text("name"), domain.count("documents"), domain.count("tokens")});
  }
  summary.tokenizer = fields.text("tokenizer");
  summary.vocab_size = fields.count("vocab_size", 1);
  summary.append_eod = fields.flag("append_eod");
  summary.eod = fields.count("eod", -1);
  for (const Json& source : fields.list("sources")) {
    if (!source.is_string()) fields.fail("sources", "a list of strings");
    summary.sources.push_back(source.get<std::string>());
  }
  if (!fields.at("skipped").is_object()) fields.fail("skipped", "an object of counts");
  for (const auto& [reason, count] : fields.at("skipped").items()) {
    if (!count.is_number_integer()) fields.fail("skipped", "an object of counts");
    summary.skipped[reason] = count.get<std::int64_t>();
  }
  return summary;
}

}  // namespace ballast
