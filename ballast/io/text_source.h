// The texts a corpus is built from, one at a time, in an order that depends on names and content only. Inputs are text
// files (one document each), folders (every text file below, by sorted path; links and hidden files are passed over)
// and JSONL files (a document a line, under the key `text`, its domain under `domain`).
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ballast/base/units.h"
#include "ballast/io/checksum.h"

namespace ballast {

struct StatedDomain {
  std::string name;
  std::filesystem::path path;  // a file, or a folder and all below it; the innermost statement holds
};

struct TextSelection {
  std::vector<std::string> include;  // shell patterns; files of folders must match one of them, if there are any
  std::vector<std::string> exclude;  // files and folders that match are passed over
  Bytes min_bytes = 1;               // shorter texts are left out; texts without a byte always are
  bool dedup = false;                // leave out texts whose bytes came before; remembers 16 bytes a text
};

struct Text {
  std::string bytes;  // UTF-8
  std::string domain;
  std::string place;  // file, or file:line
};

class TextSource {
 public:
  // `paths`: "-" is JSONL on standard input. A stated path that none of `paths` holds is read as well, after them.
  // A pattern with a / is held against the path below its input folder, any other against the last name; * also matches
  // /. A text without a stated domain, or one in its JSONL line, takes the name of its input folder; a text file given
  // itself that of the folder it lies in; a JSONL file its own name without the suffix.
  // Throws UserError: a path that does not exist, or two inputs one of which holds the other.
  TextSource(const std::vector<std::filesystem::path>& paths, const std::vector<StatedDomain>& stated,
             TextSelection selection);
  ~TextSource();

  // Nothing once all is read. Throws UserError naming file and line at a line of JSONL that is none.
  std::optional<Text> next();

  // What was passed over so far, by reason: empty, short, duplicate, binary (a NUL byte), not_utf8 (over 1% of the
  // bytes), link, hidden, excluded, special (no ordinary file), unreadable.
  const std::map<std::string, std::int64_t>& skipped() const { return skipped_; }
  // Texts kept in which some bytes that are not UTF-8 were replaced by U+FFFD.
  std::int64_t repaired() const { return repaired_; }
  // The input folders and files, without links, in reading order.
  const std::vector<std::filesystem::path>& inputs() const { return inputs_; }

 private:
  struct Entry {
    std::filesystem::path path;
    std::filesystem::path below;  // relative to the input folder; empty for an input itself
    std::string default_domain;
  };
  struct JsonLines;  // the JSONL file being read

  std::optional<Text> next_candidate();
  void push_folder(const Entry& folder);
  bool passes(const Entry& entry, bool is_folder);
  std::optional<Text> read_text(const Entry& entry);
  std::optional<std::string> stated_domain(const std::filesystem::path& path) const;

  std::vector<StatedDomain> stated_;
  TextSelection selection_;
  std::vector<std::filesystem::path> inputs_;
  std::vector<Entry> waiting_;  // the next one last
  std::unique_ptr<JsonLines> lines_;
  std::unordered_set<Checksum> seen_;
  std::map<std::string, std::int64_t> skipped_;
  std::int64_t repaired_ = 0;
};

// Whether `path` is `folder` or lies below it. Both absolute and without links.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace ballast
