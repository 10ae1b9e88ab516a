// Streams of documents for the packing tests, and what must hold of every packer on every stream.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ballast/packing/packed_stream.h"

namespace ballast::testing {

inline DocumentSource source_of(std::vector<Tokens> lengths, std::size_t from = 0) {
  auto all = std::make_shared<std::vector<Tokens>>(std::move(lengths));
  auto at = std::make_shared<std::size_t>(from);
  return [all, at]() -> std::optional<Document> {
    if (*at == all->size()) return std::nullopt;
    Document document;
    document.id = static_cast<std::int64_t>(*at);
    document.domain = static_cast<int>(*at % 3);
    document.length = (*all)[(*at)++];
    return document;
  };
}

inline std::vector<PackedStep> pack_all(const PackingSpec& spec, const CostModel& cost, std::vector<Tokens> lengths) {
  PackedStream stream(spec, cost, source_of(std::move(lengths)));
  std::vector<PackedStep> steps;
  while (std::optional<PackedStep> step = stream.next()) steps.push_back(std::move(*step));
  return steps;
}

inline std::vector<std::vector<Tokens>> lengths_of(const PackedStep& step) {
  std::vector<std::vector<Tokens>> lengths;
  for (const MicroBatch& micro_batch : step.micro_batches) {
    lengths.emplace_back();
    for (const Document& document : micro_batch.documents) lengths.back().push_back(document.length);
  }
  return lengths;
}

// Every run of tokens that was packed, by document, in order.
inline std::map<std::int64_t, std::vector<Document>> parts_by_document(const std::vector<PackedStep>& steps) {
  std::map<std::int64_t, std::vector<Document>> parts;
  for (const PackedStep& step : steps) {
    for (const MicroBatch& micro_batch : step.micro_batches) {
      for (const Document& document : micro_batch.documents) parts[document.id].push_back(document);
    }
  }
  for (auto& [id, runs] : parts) {
    std::sort(runs.begin(), runs.end(), [](const Document& a, const Document& b) { return a.begin < b.begin; });
  }
  return parts;
}

}  // namespace ballast::testing
