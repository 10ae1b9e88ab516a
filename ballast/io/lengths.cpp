#include "ballast/io/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "ballast/base/error.h"
#include "ballast/base/random.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/corpus.h"
#include "ballast/io/json_reader.h"
#include "ballast/io/size_text.h"

namespace ballast {

namespace {

constexpr std::string_view kBlank = " \t\r\n";
constexpr const char* kNoDomain = "all";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// An empty document in a list of lengths is a mistake upstream; and no document of 2^31 tokens was ever trained on.
constexpr Tokens kLongestDocument = Tokens{1} << 31;
bool is_length(std::int64_t value) { return value >= 1 && value <= kLongestDocument; }

// A piece of input short enough for a message.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return "\"" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "") + "\"";
}

class LengthsParser {
 public:
  explicit LengthsParser(std::string_view where) : where_(where) {}

  void add(Tokens length, std::string_view domain) {
    result_.lengths.push_back(length);
    result_.domains.push_back(domain_index(domain));
  }

  // "512" or "16K".
  Tokens length_of(std::string_view text, std::string_view place) const {
    const std::optional<std::int64_t> length = parse_size(text);
    if (!length || !is_length(*length)) {
      throw UserError(std::string(where_) + " " + std::string(place) + ": length = " + excerpt(text) +
                      " must be a whole number of tokens from 1 to 2^31, such as 4096 or 16K");
    }
    return *length;
  }

  // {"length": 512, "domain": "code"} or 512.
  void add(const JsonReader& item) {
    if (!item.value().is_object()) return add(item.integer(1, kLongestDocument), kNoDomain);
    std::optional<JsonReader> length = item.find("length");
    if (!length) length = item.find("tokens");
    if (!length) item.fail("has neither \"length\" nor \"tokens\"");
    const std::optional<JsonReader> domain = item.find("domain");
    add(length->integer(1, kLongestDocument), domain ? domain->text() : kNoDomain);
  }

  void parse_list(std::string_view text) {
    if (parse_plain_list(text)) return;
    const nlohmann::json document = parse_json(text, where_);
    for (const JsonReader& item : JsonReader(document, where_).items()) add(item);
  }

  void parse_lines(std::string_view text) {
    std::int64_t line_number = 0;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++line_number;
      const std::string_view content = trimmed(line);
      if (content.empty()) continue;
      if (content.front() == '{') {
        const std::string place = std::string(where_) + " line " + std::to_string(line_number);
        const nlohmann::json object = parse_json(content, place);
        add(JsonReader(object, place));
      } else {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), value);
        const bool plain = error == std::errc() && end == content.data() + content.size() && is_length(value);
        add(plain ? value : length_of(content, "line " + std::to_string(line_number)), kNoDomain);
      }
    }
  }

  void parse_csv(std::string_view text) {
    std::int64_t line_number = 0;
    std::size_t length_column = 0;
    std::size_t domain_column = std::string_view::npos;
    bool header_read = false;
    std::vector<std::string> fields;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++line_number;
      if (trimmed(line).empty()) continue;
      split_csv(trimmed(line), fields);
      if (!header_read) {
        length_column = column(fields, {"length", "tokens"});
        domain_column = column(fields, {"domain"});
        if (length_column == std::string_view::npos) {
          throw UserError(std::string(where_) + " line " + std::to_string(line_number) +
                          ": the header of a CSV must name a column \"length\" or \"tokens\", but has " + join(fields));
        }
        header_read = true;
        continue;
      }
      const std::string place = "line " + std::to_string(line_number);
      if (length_column >= fields.size()) {
        throw UserError(std::string(where_) + " " + place + ": has " + std::to_string(fields.size()) +
                        " columns, but the length is in column " + std::to_string(length_column + 1));
      }
      add(length_of(fields[length_column], place),
          domain_column < fields.size() ? std::string_view(fields[domain_column]) : std::string_view(kNoDomain));
    }
  }

  void sample_histogram(std::string_view text, const HistogramSampling& sampling);

  DocumentLengths take() {
    if (result_.lengths.empty()) throw UserError(std::string(where_) + ": holds no document length");
    return std::move(result_);
  }

 private:
  // Numbers alone, without building a document of them. False where something else stands in the list.
  bool parse_plain_list(std::string_view text) {
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size();
    const auto skip_blank = [&] {
      while (at < end && kBlank.find(*at) != std::string_view::npos) ++at;
    };
    std::vector<Tokens> lengths;
    skip_blank();
    while (at < end && *at != ']') {
      Tokens value = 0;
      const auto [stop, error] = std::from_chars(at, end, value);
      if (error != std::errc() || !is_length(value)) return false;
      at = stop;
      lengths.push_back(value);
      skip_blank();
      if (at < end && *at == ',') {
        ++at;
        skip_blank();
        if (at < end && *at == ']') return false;
      } else if (at < end && *at != ']') {
        return false;
      }
    }
    if (at >= end || !trimmed({at + 1, static_cast<std::size_t>(end - at - 1)}).empty()) return false;
    for (const Tokens length : lengths) add(length, kNoDomain);
    return true;
  }

  static void split_csv(std::string_view line, std::vector<std::string>& fields) {
    fields.clear();
    fields.emplace_back();
    bool inside_quotes = false;
    for (const char c : line) {
      if (c == '"')
        inside_quotes = !inside_quotes;
      else if (c == ',' && !inside_quotes)
        fields.emplace_back();
      else
        fields.back() += c;
    }
    for (std::string& field : fields) field = std::string(trimmed(field));
  }

  static std::size_t column(const std::vector<std::string>& header, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const auto found = std::find(header.begin(), header.end(), name);
      if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
    }
    return std::string_view::npos;
  }

  int domain_index(std::string_view name) {
    auto& names = result_.domain_names;
    if (!names.empty() && names[last_domain_] == name) return static_cast<int>(last_domain_);
    last_domain_ = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (last_domain_ == names.size()) names.emplace_back(name);
    return static_cast<int>(last_domain_);
  }

  std::string_view where_;
  DocumentLengths result_;
  std::size_t last_domain_ = 0;  // domains come in runs
};

struct Bin {
  Tokens begin = 0;
  Tokens end = 0;
  double up_to = 0;  // share of this bin and those before it
};

Bin parse_bin(std::string_view key, std::string_view where) {
  const std::size_t comma = key.find(',');
  const bool framed = key.size() > 2 && key.front() == '[' && key.back() == ')' && comma != std::string_view::npos;
  const auto begin = framed ? parse_size(trimmed(key.substr(1, comma - 1))) : std::nullopt;
  const auto end = framed ? parse_size(trimmed(key.substr(comma + 1, key.size() - comma - 2))) : std::nullopt;
  if (!begin || !end || *begin >= *end || *end < 2 || *end > kLongestDocument) {
    throw UserError(std::string(where) + ": key " + excerpt(key) +
                    ": must be a range of lengths \"[a,b)\" with a < b, such as \"[1024,4096)\"");
  }
  return {.begin = std::max<Tokens>(1, *begin), .end = *end};
}

void LengthsParser::sample_histogram(std::string_view text, const HistogramSampling& sampling) {
  const nlohmann::ordered_json histogram = [&] {
    parse_json(text, where_);  // for its message where the text is broken
    return nlohmann::ordered_json::parse(text);
  }();
  std::vector<Bin> bins;
  double total = 0;
  for (const auto& [key, share] : histogram.items()) {
    Bin bin = parse_bin(key, where_);
    if (!share.is_number() || !(share.get<double>() >= 0)) {
      throw UserError(std::string(where_) + ": " + excerpt(key) + ": a share must be a number of 0 or more");
    }
    total += share.get<double>();
    bin.up_to = total;
    bins.push_back(bin);
  }
  if (!(total > 0)) throw UserError(std::string(where_) + ": the shares of a histogram must sum to more than 0");

  Random random(sampling.seed);
  result_.sampled = true;
  for (std::int64_t i = 0; i < sampling.documents; ++i) {
    const double drawn = random.uniform() * total;
    const auto above =
        std::upper_bound(bins.begin(), bins.end(), drawn, [](double d, const Bin& bin) { return d < bin.up_to; });
    const Bin& bin = above == bins.end() ? bins.back() : *above;
    if (bin.end <= 2 * bin.begin) {
      add(bin.begin + static_cast<Tokens>(random.below(static_cast<std::uint64_t>(bin.end - bin.begin))), kNoDomain);
    } else {
      const double low = std::log(static_cast<double>(bin.begin));
      const double high = std::log(static_cast<double>(bin.end));
      add(std::clamp(static_cast<Tokens>(std::exp(low + random.uniform() * (high - low))), bin.begin, bin.end - 1),
          kNoDomain);
    }
  }
}

// Whether the first key of an object looks like a range of lengths.
bool is_histogram(std::string_view text) {
  const std::string_view inside = trimmed(text.substr(1));
  return inside.size() > 1 && inside[0] == '"' && inside[1] == '[';
}

bool is_csv(std::string_view text) {
  const std::string_view first_line = trimmed(text.substr(0, text.find('\n')));
  return first_line.find(',') != std::string_view::npos || first_line == "length" || first_line == "tokens";
}

DocumentLengths lengths_of_corpus(const std::string& folder) {
  const Corpus corpus(folder);
  DocumentLengths result{
      .lengths = corpus.lengths(), .domains = corpus.domains(), .domain_names = corpus.domain_names()};
  if (result.lengths.empty()) throw UserError(folder + ": holds no document");
  return result;
}

}  // namespace

DocumentLengths parse_lengths(std::string_view text, std::string_view where, const HistogramSampling& sampling) {
  LengthsParser parser(where);
  const std::string_view content = trimmed(text);
  if (content.empty()) throw UserError(std::string(where) + ": is empty: it must hold document lengths");
  if (content.front() == '[') {
    parser.parse_list(content);
  } else if (content.front() == '{' && is_histogram(content)) {
    parser.sample_histogram(content, sampling);
  } else if (content.front() != '{' && is_csv(content)) {
    parser.parse_csv(text);
  } else {
    parser.parse_lines(text);
  }
  return parser.take();
}

DocumentLengths read_lengths(const std::string& path, const HistogramSampling& sampling) {
  if (path == "-") return parse_lengths(read_file("/dev/stdin"), "standard input", sampling);
  if (std::filesystem::is_directory(path)) return lengths_of_corpus(path);
  return parse_lengths(read_file(path), path, sampling);
}

}  // namespace ballast
