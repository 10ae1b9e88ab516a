#include "ballast/io/checkpoint_json.h"

#include <nlohmann/json.hpp>

#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

nlohmann::ordered_json tensors_to_value(const std::vector<CheckpointTensor>& tensors) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CheckpointTensor& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"file", tensor.file},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"xxh3_128", tensor.checksum}});
  }
  return list;
}

std::vector<CheckpointTensor> read_tensors(const JsonReader& reader) {
  std::vector<CheckpointTensor> tensors;
  for (const JsonReader& item : reader.items()) {
    item.expect_keys({"name", "file", "dtype", "shape", "xxh3_128"});
    tensors.push_back({item["name"].text(), item["file"].text(), item["dtype"].text(), item["shape"].integers(0),
                       item["xxh3_128"].text()});
  }
  return tensors;
}

}  // namespace

std::string to_json(const CheckpointManifest& manifest) {
  const nlohmann::ordered_json value = {{"version", CheckpointManifest::kVersion},
                                        {"step", manifest.step},
                                        {"model", manifest.model},
                                        {"precision", manifest.precision},
                                        {"layout", manifest.layout},
                                        {"corpus", manifest.corpus},
                                        {"seed", manifest.seed},
                                        {"source_state", manifest.source_state},
                                        {"tensors", tensors_to_value(manifest.tensors)}};
  return value.dump(1) + "\n";
}

CheckpointManifest checkpoint_manifest_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  const JsonReader reader(value, where);
  reader.expect_version(CheckpointManifest::kVersion);
  reader.expect_keys({"version", "step", "model", "precision", "layout", "corpus", "seed", "source_state", "tensors"});
  CheckpointManifest manifest;
  manifest.step = reader["step"].integer(0);
  manifest.model = reader["model"].text();
  manifest.precision = reader["precision"].text();
  manifest.layout = reader["layout"].text();
  manifest.corpus = reader["corpus"].text();
  manifest.seed = static_cast<std::uint64_t>(reader["seed"].integer(0));
  manifest.source_state = reader["source_state"].text();
  manifest.tensors = read_tensors(reader["tensors"]);
  return manifest;
}

std::string to_json(const std::vector<CheckpointTensor>& tensors) { return tensors_to_value(tensors).dump() + "\n"; }

std::vector<CheckpointTensor> checkpoint_tensors_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  return read_tensors(JsonReader(value, where));
}

}  // namespace ballast
