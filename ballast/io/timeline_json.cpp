#include "ballast/io/timeline_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

constexpr int kVersion = 1;
constexpr double kTicksPerSecond = 1e7;
constexpr std::string_view kStepPrefix = "{\"step\":";

// Decimal seconds without trailing zeros; cheaper and shorter than printing a double.
void append_seconds(std::string& out, Seconds seconds) {
  std::int64_t ticks = std::llround(seconds * kTicksPerSecond);
  if (ticks < 0) {
    out += '-';
    ticks = -ticks;
  }
  std::int64_t fraction = ticks % static_cast<std::int64_t>(kTicksPerSecond);
  fmt::format_to(std::back_inserter(out), "{}", ticks / static_cast<std::int64_t>(kTicksPerSecond));
  if (fraction == 0) return;
  int digits = 7;
  for (; fraction % 10 == 0; fraction /= 10) --digits;
  fmt::format_to(std::back_inserter(out), ".{:0{}}", fraction, digits);
}

void append_span(std::string& out, const Span& s) {
  fmt::format_to(std::back_inserter(out), "[{},\"{}\",{},{},{},", s.rank, to_string(s.kind), s.stage, s.micro_batch,
                 s.layer);
  for (const Seconds seconds : {s.begin, s.end, s.wait, s.lease}) {
    append_seconds(out, seconds);
    out += ',';
  }
  fmt::format_to(std::back_inserter(out), "{},{},\"{}\"]", s.bytes, s.peer, to_string(s.axis));
}

void append_lines(std::string& out, const std::vector<Span>& spans) {
  for (std::size_t i = 0; i < spans.size();) {
    const std::int64_t step = spans[i].step;
    fmt::format_to(std::back_inserter(out), "{}{},\"spans\":[", kStepPrefix, step);
    for (bool first = true; i < spans.size() && spans[i].step == step; ++i, first = false) {
      if (!first) out += ',';
      append_span(out, spans[i]);
    }
    out += "]}\n";
  }
}

std::string header_line(const std::string& source, const ParallelDims& dims) {
  return fmt::format("{{\"version\":{},\"source\":{},\"dims\":{{\"dp\":{},\"pp\":{},\"cp\":{}}}}}\n", kVersion,
                     nlohmann::json(source).dump(), dims.dp, dims.pp, dims.cp);
}

Timeline read_header(std::string_view line, const std::string& where) {
  const nlohmann::json document = parse_json(line, where);
  const JsonReader reader(document, where);
  reader.expect_version(kVersion);
  reader.expect_keys({"version", "source", "dims"});
  return {.source = reader["source"].text(), .dims = read_dims(reader["dims"]), .spans = {}};
}

Span read_span(const JsonReader& reader, std::int64_t step, int world_size) {
  reader.expect_size(12);
  const std::vector<JsonReader> items = reader.items();
  const auto parsed = [](const JsonReader& item, auto parse) {
    const std::string text = item.text();
    try {
      return parse(text);
    } catch (const UserError& error) {
      item.fail(error.what());
    }
  };
  return {.rank = items[0].small_integer(0, world_size - 1),
          .step = step,
          .kind = parsed(items[1], parse_span_kind),
          .stage = items[2].small_integer(-1),
          .micro_batch = items[3].small_integer(-1),
          .layer = items[4].small_integer(-1),
          .begin = items[5].number(),
          .end = items[6].number(),
          .wait = items[7].number(),
          .lease = items[8].number(),
          .bytes = items[9].integer(0, kLargestCount),
          .peer = items[10].small_integer(-1, world_size - 1),
          .axis = parsed(items[11], parse_axis)};
}

// Length of the part of `content` to keep: its header and the whole lines of steps before `first_step`.
std::size_t kept_bytes(std::string_view content, std::int64_t first_step) {
  std::size_t kept = content.find('\n') + 1;
  for (std::size_t end = content.find('\n', kept); end != std::string_view::npos; end = content.find('\n', kept)) {
    const std::string_view line = content.substr(kept, end - kept);
    std::int64_t step = 0;
    if (line.size() > kStepPrefix.size())
      std::from_chars(line.data() + kStepPrefix.size(), line.data() + line.size(), step);
    if (step >= first_step) break;
    kept = end + 1;
  }
  return kept;
}

}  // namespace

TimelineWriter::TimelineWriter(const std::filesystem::path& path, const std::string& source, const ParallelDims& dims,
                               std::int64_t first_step)
    : path_(path.string()) {
  const std::string header = header_line(source, dims);
  std::error_code error;
  const bool goes_on = std::filesystem::exists(path, error);
  if (goes_on) {
    const std::string content = read_file(path);
    // A file that was never given its whole header holds nothing.
    if (content.find('\n') == std::string::npos) {
      std::filesystem::remove(path);
    } else {
      if (!content.starts_with(header)) {
        throw UserError(path_ + ": holds another timeline than one " + source + " on " + to_string(dims) +
                        ": move it away first");
      }
      std::filesystem::resize_file(path, kept_bytes(content, first_step));
    }
  }
  file_ = std::fopen(path_.c_str(), "ab");
  if (file_ == nullptr) throw UserError(path_ + ": cannot be written: " + std::strerror(errno));
  if (std::filesystem::file_size(path) == 0) buffer_ = header;
}

TimelineWriter::~TimelineWriter() {
  if (!buffer_.empty()) std::fwrite(buffer_.data(), 1, buffer_.size(), file_);  // a header with no step after it
  std::fclose(file_);
}

void TimelineWriter::append(const std::vector<Span>& spans) {
  append_lines(buffer_, spans);
  const bool written =
      std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size() && std::fflush(file_) == 0;
  buffer_.clear();
  if (!written) throw RunError(path_ + ": cannot be written: " + std::strerror(errno));
}

std::string to_json(const Timeline& timeline) {
  std::string text = header_line(timeline.source, timeline.dims);
  append_lines(text, timeline.spans);
  return text;
}

Timeline timeline_from_json(std::string_view text, std::string_view where) {
  const auto line_name = [&](int number) { return std::string(where) + " line " + std::to_string(number); };
  std::size_t end = text.find('\n');
  if (end == std::string_view::npos)
    throw UserError(std::string(where) + ": holds no timeline: its first line is not whole");
  Timeline timeline = read_header(text.substr(0, end), line_name(1));
  const int world_size = timeline.dims.world_size();
  int number = 2;
  for (text.remove_prefix(end + 1); (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string line_where = line_name(number++);
    const nlohmann::json document = parse_json(text.substr(0, end), line_where);
    const JsonReader reader(document, line_where);
    reader.expect_keys({"step", "spans"});
    const std::int64_t step = reader["step"].integer(0);
    for (const JsonReader& item : reader["spans"].items()) timeline.spans.push_back(read_span(item, step, world_size));
  }
  return timeline;
}

Timeline read_timeline(const std::filesystem::path& path) { return timeline_from_json(read_file(path), path.string()); }

std::string measured_timeline_name(int rank) { return fmt::format("measured-rank-{:05}.jsonl", rank); }

Timeline read_run_timeline(const std::filesystem::path& timeline_folder, const std::string& source) {
  if (source != "measured") return read_timeline(timeline_folder / (source + ".jsonl"));
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(timeline_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("measured-rank-") && name.ends_with(".jsonl")) paths.push_back(entry.path());
  }
  if (paths.empty())
    throw UserError(timeline_folder.string() + ": holds no measured-rank-*.jsonl: no run has recorded there");
  std::sort(paths.begin(), paths.end());
  Timeline whole = read_timeline(paths.front());
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const Timeline part = read_timeline(paths[i]);
    if (part.dims != whole.dims) {
      throw UserError(paths[i].string() + ": is of " + to_string(part.dims) + ", but " + paths.front().string() +
                      " of " + to_string(whole.dims));
    }
    whole.spans.insert(whole.spans.end(), part.spans.begin(), part.spans.end());
  }
  return whole;
}

}  // namespace ballast
