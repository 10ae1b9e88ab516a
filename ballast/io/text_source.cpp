#include "ballast/io/text_source.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "ballast/base/error.h"
#include "ballast/io/utf8.h"

namespace ballast {

namespace fs = std::filesystem;

namespace {

const fs::path kStandardInput = "-";

// Without links in it, so that two names of one place compare equal.
fs::path resolve(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  if (error) throw UserError(path.string() + ": cannot be read: " + error.message());
  return resolved;
}

bool is_json_lines(const fs::path& path) { return path.extension() == ".jsonl" || path == kStandardInput; }

bool matches(const std::string& pattern, const fs::path& below) {
  const bool whole = pattern.find('/') != std::string::npos;
  return ::fnmatch(pattern.c_str(), (whole ? below : below.filename()).c_str(), 0) == 0;
}

std::string domain_of_input(const fs::path& path) {
  if (path == kStandardInput) return "stdin";
  const fs::path name = fs::is_directory(path) ? path.filename()
                        : is_json_lines(path)  ? path.stem()
                                               : path.parent_path().filename();
  return name.empty() ? path.string() : name.string();  // the root folder has no name
}

}  // namespace

bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

struct TextSource::JsonLines {
  std::FILE* file = nullptr;
  std::string path;
  std::string default_domain;
  bool domain_is_stated = false;
  std::int64_t line_number = 0;
  char* line = nullptr;  // of getline
  std::size_t capacity = 0;

  ~JsonLines() {
    std::free(line);
    if (file != nullptr && file != stdin) std::fclose(file);
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError(path + ":" + std::to_string(line_number) + ": " + why);
  }

  std::string field(nlohmann::json& object, const char* key) const {
    nlohmann::json& value = object[key];
    if (!value.is_string()) fail(std::string(key) + " is not a string");
    return std::move(value.get_ref<std::string&>());
  }

  std::optional<Text> next() {
    while (true) {
      errno = 0;
      const ssize_t size = ::getline(&line, &capacity, file);
      ++line_number;
      if (size < 0) {
        if (std::ferror(file) != 0) fail(std::string("cannot be read: ") + std::strerror(errno));
        return std::nullopt;
      }
      const std::string_view content(line, static_cast<std::size_t>(size));
      if (content.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
      nlohmann::json object = nlohmann::json::parse(content, nullptr, false);
      if (object.is_discarded()) fail("not valid JSON (in UTF-8)");
      if (!object.is_object() || !object.contains("text")) fail("not an object with the key text");
      Text text{field(object, "text"), default_domain, path + ":" + std::to_string(line_number)};
      if (!domain_is_stated && object.contains("domain")) text.domain = field(object, "domain");
      return text;
    }
  }
};

TextSource::TextSource(const std::vector<fs::path>& paths, const std::vector<StatedDomain>& stated,
                       TextSelection selection)
    : selection_(std::move(selection)) {
  for (const StatedDomain& domain : stated) stated_.push_back({domain.name, resolve(domain.path)});
  for (const fs::path& path : paths) {
    const fs::path resolved = path == kStandardInput ? path : resolve(path);
    for (const fs::path& other : inputs_) {
      if (lies_in(resolved, other) || lies_in(other, resolved)) {
        throw UserError(path.string() + ": its texts would be read twice: one of it and " + other.string() +
                        " lies in the other");
      }
    }
    inputs_.push_back(resolved);
  }
  std::vector<fs::path> more;
  for (const StatedDomain& domain : stated_) {
    const auto holds = [&](const fs::path& other) { return lies_in(domain.path, other); };
    const auto holds_as_stated = [&](const StatedDomain& other) {
      return other.path != domain.path && holds(other.path);
    };
    if (std::any_of(inputs_.begin(), inputs_.end(), holds) ||
        std::any_of(stated_.begin(), stated_.end(), holds_as_stated)) {
      continue;
    }
    for (const fs::path& input : inputs_) {
      if (lies_in(input, domain.path))
        throw UserError(domain.path.string() + ": holds " + input.string() + ", which is read already");
    }
    if (std::find(more.begin(), more.end(), domain.path) == more.end()) more.push_back(domain.path);
  }
  inputs_.insert(inputs_.end(), more.begin(), more.end());
  for (auto input = inputs_.rbegin(); input != inputs_.rend(); ++input) {
    waiting_.push_back({*input, {}, domain_of_input(*input)});
  }
}

TextSource::~TextSource() = default;

std::optional<std::string> TextSource::stated_domain(const fs::path& path) const {
  const StatedDomain* innermost = nullptr;
  for (const StatedDomain& domain : stated_) {
    if (lies_in(path, domain.path) && (innermost == nullptr || lies_in(domain.path, innermost->path)))
      innermost = &domain;
  }
  if (innermost == nullptr) return std::nullopt;
  return innermost->name;
}

bool TextSource::passes(const Entry& entry, bool is_folder) {
  const auto fits = [&](const std::string& pattern) { return matches(pattern, entry.below); };
  if (entry.below.filename().string().starts_with('.')) {
    ++skipped_["hidden"];
    return false;
  }
  const bool left_out = std::any_of(selection_.exclude.begin(), selection_.exclude.end(), fits);
  const bool taken = is_folder || selection_.include.empty() ||
                     std::any_of(selection_.include.begin(), selection_.include.end(), fits);
  if (left_out || !taken) ++skipped_["excluded"];
  return taken && !left_out;
}

void TextSource::push_folder(const Entry& folder) {
  std::error_code error;
  std::vector<fs::path> names;
  fs::directory_iterator entries(folder.path, error);
  while (!error && entries != fs::directory_iterator()) {
    names.push_back(entries->path().filename());
    entries.increment(error);
  }
  if (error) {
    if (folder.below.empty()) throw UserError(folder.path.string() + ": cannot be read: " + error.message());
    ++skipped_["unreadable"];
    return;
  }
  std::sort(names.begin(), names.end(), [](const fs::path& a, const fs::path& b) { return a.native() > b.native(); });
  for (const fs::path& name : names)
    waiting_.push_back({folder.path / name, folder.below / name, folder.default_domain});
}

// The content, unless it is no text. The beginning decides about most binary files, so they are not read whole.
std::optional<Text> TextSource::read_text(const Entry& entry) {
  const auto skip = [&](const char* reason) {
    ++skipped_[reason];
    return std::nullopt;
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(entry.path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return skip("unreadable");
  std::string bytes;
  std::vector<char> buffer(1 << 16);
  std::size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0) {
    if (std::memchr(buffer.data(), 0, got) != nullptr) return skip("binary");
    bytes.append(buffer.data(), got);
  }
  if (std::ferror(file.get()) != 0) return skip("unreadable");
  const auto size = static_cast<Bytes>(bytes.size());
  const std::int64_t replaced = repair_utf8(bytes);
  if (replaced > size / 100) return skip("not_utf8");
  if (replaced > 0) ++repaired_;
  return Text{std::move(bytes), stated_domain(entry.path).value_or(entry.default_domain), entry.path.string()};
}

std::optional<Text> TextSource::next_candidate() {
  while (true) {
    if (lines_ != nullptr) {
      if (auto text = lines_->next()) return text;
      lines_.reset();
    }
    if (waiting_.empty()) return std::nullopt;
    const Entry entry = std::move(waiting_.back());
    waiting_.pop_back();
    std::error_code error;
    const bool given = entry.below.empty();
    const fs::file_status status = fs::symlink_status(entry.path, error);
    if (fs::is_symlink(status)) {
      ++skipped_["link"];
    } else if (fs::is_directory(status)) {
      if (given || passes(entry, true)) push_folder(entry);
    } else if (entry.path != kStandardInput && !fs::is_regular_file(status)) {
      ++skipped_["special"];
    } else if (given || passes(entry, false)) {
      if (!is_json_lines(entry.path)) {
        if (auto text = read_text(entry)) return text;
        continue;
      }
      lines_ = std::make_unique<JsonLines>();
      const bool standard_input = entry.path == kStandardInput;
      lines_->path = standard_input ? "standard input" : entry.path.string();
      const std::optional<std::string> stated = standard_input ? std::nullopt : stated_domain(entry.path);
      lines_->default_domain = stated.value_or(entry.default_domain);
      lines_->domain_is_stated = stated.has_value();
      lines_->file = standard_input ? stdin : std::fopen(entry.path.c_str(), "rb");
      if (lines_->file == nullptr) {
        throw UserError(entry.path.string() + ": cannot be read: " + std::strerror(errno));
      }
    }
  }
}

std::optional<Text> TextSource::next() {
  while (auto text = next_candidate()) {
    const char* reason = text->bytes.empty()                                               ? "empty"
                         : static_cast<Bytes>(text->bytes.size()) < selection_.min_bytes   ? "short"
                         : selection_.dedup && !seen_.insert(checksum(text->bytes)).second ? "duplicate"
                                                                                           : nullptr;
    if (reason == nullptr) return text;
    ++skipped_[reason];
  }
  return std::nullopt;
}

}  // namespace ballast
