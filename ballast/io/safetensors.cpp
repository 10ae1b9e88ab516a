#include "ballast/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "ballast/io/atomic_file.h"
#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

constexpr const char* kMetadataKey = "__metadata__";
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the format's own limit

// Bytes of a tensor, or nothing where they are more than 63 bits can count.
std::optional<Bytes> bytes_needed(const std::vector<std::int64_t>& shape, Bytes element) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  Bytes bytes = element;
  for (const std::int64_t extent : shape) {
    if (bytes > std::numeric_limits<Bytes>::max() / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

}  // namespace

Bytes dtype_size(std::string_view dtype) {
  static const std::map<std::string_view, Bytes> sizes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                          {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
                                                          {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

Violations TensorView::violations() const {
  const std::string label = "tensor \"" + name + "\"";
  if (name.empty() || name == kMetadataKey) return {label + ": not a name for a tensor"};
  if (dtype_size(dtype) == 0) return {label + ": dtype \"" + dtype + "\" is unknown"};
  for (const std::int64_t extent : shape) {
    if (extent < 0) return {label + ": shape has the negative extent " + std::to_string(extent)};
  }
  const std::optional<Bytes> needed = bytes_needed(shape, dtype_size(dtype));
  if (!needed || *needed != static_cast<Bytes>(bytes.size())) {
    return {label + ": has " + std::to_string(bytes.size()) + " bytes, its shape and dtype need " +
            (needed ? std::to_string(*needed) : "more than there can be")};
  }
  return {};
}

Checksum write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                           const TensorMetadata& metadata) {
  std::vector<const TensorView*> ordered;
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    BALLAST_ASSERT(tensor.violations().empty(), tensor.violations().front());
    BALLAST_ASSERT(names.insert(tensor.name).second, "names of tensors differ");
    ordered.push_back(&tensor);
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const TensorView* a, const TensorView* b) {
    return dtype_size(a->dtype) > dtype_size(b->dtype);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::size_t offset = 0;
  for (const TensorView* tensor : ordered) {
    const std::size_t end = offset + tensor->bytes.size();
    header[tensor->name] = {{"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so the first tensor starts at a multiple of 8
  const auto text_size = static_cast<std::uint64_t>(text.size());

  AtomicFile file(path);
  ChecksumStream sum;
  const auto write = [&](std::string_view bytes) {
    sum.add(bytes);
    file.write(bytes);
  };
  write({reinterpret_cast<const char*>(&text_size), sizeof text_size});
  write(text);
  for (const TensorView* tensor : ordered) {
    write({reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()});
  }
  file.commit();
  return sum.value();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  const std::string where = path.string();
  const auto refuse = [&](const std::string& why) { throw UserError(where + ": " + why); };
  const std::span<const std::byte> bytes = file_.bytes();
  std::uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size)
    refuse("truncated: " + std::to_string(bytes.size()) + " bytes are no safetensors file");
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size > bytes.size() - sizeof header_size || header_size > kLargestHeader) {
    refuse("header of " + std::to_string(header_size) + " bytes does not fit the file of " +
           std::to_string(bytes.size()) + ": truncated, or no safetensors file");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header_size, header_size);
  const std::span<const std::byte> data = bytes.subspan(sizeof header_size + header_size);
  const nlohmann::json header = parse_json(text, where);
  if (!header.is_object()) refuse("its header is not a JSON object");

  for (const auto& [name, entry] : header.items()) {
    const JsonReader reader(entry, where, name);
    if (name == kMetadataKey) {
      if (!entry.is_object()) reader.fail("must be an object of strings");
      for (const auto& [key, value] : entry.items()) metadata_[key] = JsonReader(value, where, name + "." + key).text();
      continue;
    }
    const std::vector<std::int64_t> offsets =
        reader["data_offsets"].integers(0, static_cast<std::int64_t>(data.size()));
    if (offsets.size() != 2 || offsets[0] > offsets[1]) reader["data_offsets"].fail("must be [begin, end]");
    TensorView tensor{
        name, reader["dtype"].text(), reader["shape"].integers(0),
        data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1] - offsets[0]))};
    require_valid(tensor.violations(), where);
    tensors_.push_back(std::move(tensor));
  }

  // Side by side and to the last byte: then none overlaps, and no byte hides from the checks above.
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const TensorView& a, const TensorView& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  const std::byte* end = data.data();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorView& tensor = tensors_[i];
    if (tensor.bytes.data() != end) {
      refuse("tensor \"" + tensor.name + "\": begins at byte " + std::to_string(tensor.bytes.data() - data.data()) +
             " of the data, but the tensors before it end at " + std::to_string(end - data.data()));
    }
    end += tensor.bytes.size();
    indices_.emplace(tensor.name, i);
  }
  if (end != data.data() + data.size()) {
    refuse(std::to_string(data.size()) + " bytes of data, but the tensors end at " + std::to_string(end - data.data()));
  }
}

const TensorView& SafetensorsFile::at(const std::string& name) const {
  const auto found = indices_.find(name);
  if (found != indices_.end()) return tensors_[found->second];
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  const std::string nearest = nearest_name(name, names);
  throw UserError(path_.string() + ": no tensor \"" + name + "\"" +
                  (nearest.empty() ? "" : "; nearest is \"" + nearest + "\""));
}

}  // namespace ballast
