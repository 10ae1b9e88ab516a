#include <nlohmann/json.hpp>
#include <string>

#include "ballast/io/corpus.h"
#include "ballast/io/json_reader.h"

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

CorpusSummary corpus_summary_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json json = parse_json(text, where);
  const JsonReader reader(json, where);
  reader.expect_version(1);

  CorpusSummary summary;
  summary.documents = reader["documents"].integer(0, kLargestCount);
  summary.tokens = reader["tokens"].tokens();
  summary.longest_tokens = reader["longest_tokens"].tokens();
  for (const JsonReader& domain : reader["domains"].items()) {
    summary.domains.push_back(
        {domain["name"].text(), domain["documents"].integer(0, kLargestCount), domain["tokens"].tokens()});
  }
  summary.tokenizer = reader["tokenizer"].text();
  summary.vocab_size = reader["vocab_size"].integer(1, std::int64_t{1} << 32);
  summary.append_eod = reader["append_eod"].boolean();
  summary.eod = reader["eod"].integer(-1, summary.vocab_size - 1);
  for (const JsonReader& source : reader["sources"].items()) summary.sources.push_back(source.text());
  if (!reader["skipped"].value().is_object()) reader["skipped"].fail("must be an object of counts");
  for (const auto& [reason, count] : reader["skipped"].value().items()) {
    summary.skipped[reason] = JsonReader(count, where, "skipped." + reason).integer(0, kLargestCount);
  }
  return summary;
}

}  // namespace ballast
