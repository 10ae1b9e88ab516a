#include "ballast/io/run_record_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"
#include "ballast/io/json_reader.h"

namespace ballast {

namespace {

using Json = nlohmann::ordered_json;

// Strings that are not UTF-8 (a path, say) are written with replacement characters rather than refused.
std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// JSON has no NaN or infinity.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json finite(const std::optional<double>& value) { return value ? finite(*value) : Json(nullptr); }

Json to_value(const MeanMax& value) { return {{"mean", finite(value.mean)}, {"max", finite(value.max)}}; }
Json to_value(const Quantiles& value) {
  return {{"mean", value.mean}, {"p50", value.p50}, {"p99", value.p99}, {"max", value.max}};
}
template <class T>
Json to_value(const std::optional<T>& value) {
  return value ? to_value(*value) : Json(nullptr);
}

// Absent and null are the same: the run has no such figure.
std::optional<JsonReader> figure(const JsonReader& object, const char* key) {
  std::optional<JsonReader> found = object.find(key);
  return found && !found->value().is_null() ? found : std::nullopt;
}

double number_or(const JsonReader& object, const char* key, double otherwise) {
  const auto found = figure(object, key);
  return found ? found->number() : otherwise;
}

// Of a number that is written as null where it is not finite.
double number_or_nan(const JsonReader& number) {
  return number.value().is_null() ? std::numeric_limits<double>::quiet_NaN() : number.number();
}

std::optional<double> optional_number(const JsonReader& object, const char* key) {
  const auto found = figure(object, key);
  return found ? std::optional(found->number()) : std::nullopt;
}

std::int64_t count_or(const JsonReader& object, const char* key, std::int64_t otherwise) {
  const auto found = figure(object, key);
  return found ? found->integer(0, kLargestCount) : otherwise;
}

std::string text_or_empty(const JsonReader& object, const char* key) {
  const auto found = figure(object, key);
  return found ? found->text() : "";
}

std::optional<MeanMax> mean_max(const JsonReader& object, const char* key) {
  const auto found = figure(object, key);
  if (!found) return std::nullopt;
  return MeanMax{(*found)["mean"].number(), (*found)["max"].number()};
}

Quantiles quantiles(const JsonReader& object) {
  return {object["mean"].number(), object["p50"].number(), object["p99"].number(), object["max"].number()};
}

}  // namespace

std::string to_json(const StepMetrics& m) {
  const Json value = {
      {"step", m.step},
      {"loss", finite(m.loss)},
      {"tokens", m.tokens},
      {"labels", m.labels},
      {"step_seconds", m.simulated ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(m.step_seconds)},
      {"tokens_per_second", m.tokens_per_second},
      {"grad_norm", finite(m.grad_norm)},
      {"lr", m.lr},
      {"imbalance", {{"micro_batch", finite(m.imbalance_micro_batch)}, {"cp", finite(m.imbalance_cp)}}},
      {"imbalance_measured", finite(m.imbalance_measured)},
      {"peak_memory_bytes", finite(m.peak_memory_bytes)},
      {"predicted_step_seconds", finite(m.predicted_step_seconds)},
      {"replayed_step_seconds", finite(m.replayed_step_seconds)},
      {"planning_seconds", m.planning_seconds},
      {"recording_seconds", m.recording_seconds},
      {"wait_seconds", to_value(m.wait_seconds)},
      {"work_seconds", to_value(m.work_seconds)},
      {"token_delay_steps", to_value(m.token_delay_steps)},
  };
  return dump(value, -1);
}

StepMetrics step_metrics_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  const JsonReader line(value, where);
  StepMetrics m;
  m.step = line["step"].integer();
  m.loss = number_or_nan(line["loss"]);
  m.tokens = line["tokens"].tokens();
  m.labels = count_or(line, "labels", m.tokens);
  m.predicted_step_seconds = optional_number(line, "predicted_step_seconds");
  m.simulated = line["step_seconds"].value().is_null() && m.predicted_step_seconds.has_value();
  m.step_seconds = m.simulated ? *m.predicted_step_seconds : line["step_seconds"].number();
  if (!(m.step_seconds > 0)) line["step_seconds"].fail("must be above 0");
  m.tokens_per_second = number_or(line, "tokens_per_second", static_cast<double>(m.tokens) / m.step_seconds);
  m.grad_norm = number_or(line, "grad_norm", std::numeric_limits<double>::quiet_NaN());
  m.lr = number_or(line, "lr", 0);
  if (const auto imbalance = figure(line, "imbalance")) {
    m.imbalance_micro_batch = optional_number(*imbalance, "micro_batch");
    m.imbalance_cp = optional_number(*imbalance, "cp");
  }
  m.imbalance_measured = optional_number(line, "imbalance_measured");
  m.peak_memory_bytes = optional_number(line, "peak_memory_bytes");
  m.replayed_step_seconds = optional_number(line, "replayed_step_seconds");
  m.planning_seconds = number_or(line, "planning_seconds", 0);
  m.recording_seconds = number_or(line, "recording_seconds", 0);
  m.wait_seconds = mean_max(line, "wait_seconds");
  m.work_seconds = mean_max(line, "work_seconds");
  m.token_delay_steps = mean_max(line, "token_delay_steps");
  return m;
}

std::string to_json(const RunSummary& s) {
  Json delay = to_value(s.token_delay_steps);
  if (delay.is_object()) {
    Json by_domain = Json::object();
    for (const auto& [name, value] : s.token_delay_by_domain) by_domain[name] = to_value(value);
    delay["by_domain"] = std::move(by_domain);
  }
  const Json value = {
      {"command", s.command},
      {"date", s.date},
      {"machine", {{"device", s.device}, {"cores", s.cores}}},
      {"model", s.model},
      {"precision", s.precision},
      {"window", s.window},
      {"parallel",
       {{"dp", s.parallel.dp}, {"pp", s.parallel.pp}, {"cp", s.parallel.cp}, {"virtual_stages", s.virtual_stages}}},
      {"packer", s.packer},
      {"sharding", s.sharding},
      {"profile", s.profile.empty() ? Json(nullptr) : Json(s.profile)},
      {"seed", s.seed},
      {"steps", s.steps},
      {"loss", {{"first", finite(s.loss_first)}, {"last", finite(s.loss_last)}}},
      {"tokens", s.tokens},
      {"tokens_per_second", s.tokens_per_second},
      {"step_seconds", {{"mean", s.step_seconds_mean}, {"p50", s.step_seconds_p50}, {"max", s.step_seconds_max}}},
      {"tokens_per_second_replayed", finite(s.tokens_per_second_replayed)},
      {"imbalance", {{"micro_batch", finite(s.imbalance_micro_batch)}, {"cp", finite(s.imbalance_cp)}}},
      {"imbalance_measured", finite(s.imbalance_measured)},
      {"peak_memory_bytes", finite(s.peak_memory_bytes)},
      {"predicted_peak_memory_bytes", finite(s.predicted_peak_memory_bytes)},
      {"prediction_error", to_value(s.prediction_error)},
      {"documents",
       {{"in", s.documents_in},
        {"out", s.documents_out},
        {"truncated", s.documents_truncated},
        {"split", s.documents_split},
        {"held", s.documents_held}}},
      {"token_delay_steps", std::move(delay)},
  };
  return dump(value, 2) + "\n";
}

RunSummary run_summary_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  const JsonReader top(value, where);
  RunSummary s;
  s.command = text_or_empty(top, "command");
  s.date = text_or_empty(top, "date");
  if (const auto machine = figure(top, "machine")) {
    s.device = text_or_empty(*machine, "device");
    if (const auto cores = figure(*machine, "cores")) s.cores = cores->small_integer();
  }
  s.model = text_or_empty(top, "model");
  s.precision = text_or_empty(top, "precision");
  s.window = count_or(top, "window", 0);
  const JsonReader parallel = top["parallel"];
  s.parallel = {parallel["dp"].small_integer(), parallel["pp"].small_integer(), parallel["cp"].small_integer()};
  require_valid(s.parallel.violations(), where);
  if (const auto stages = figure(parallel, "virtual_stages")) s.virtual_stages = stages->small_integer();
  s.packer = text_or_empty(top, "packer");
  s.sharding = text_or_empty(top, "sharding");
  s.profile = text_or_empty(top, "profile");
  if (const auto seed = figure(top, "seed")) s.seed = static_cast<std::uint64_t>(seed->integer());
  s.steps = top["steps"].integer(0);
  s.loss_first = number_or_nan(top["loss"]["first"]);
  s.loss_last = number_or_nan(top["loss"]["last"]);
  s.tokens = top["tokens"].tokens();
  s.tokens_per_second = top["tokens_per_second"].number();
  const JsonReader step_seconds = top["step_seconds"];
  s.step_seconds_mean = step_seconds["mean"].number();
  s.step_seconds_p50 = step_seconds["p50"].number();
  s.step_seconds_max = step_seconds["max"].number();
  s.tokens_per_second_replayed = optional_number(top, "tokens_per_second_replayed");
  if (const auto imbalance = figure(top, "imbalance")) {
    s.imbalance_micro_batch = optional_number(*imbalance, "micro_batch");
    s.imbalance_cp = optional_number(*imbalance, "cp");
  }
  s.imbalance_measured = optional_number(top, "imbalance_measured");
  s.peak_memory_bytes = optional_number(top, "peak_memory_bytes");
  s.predicted_peak_memory_bytes = optional_number(top, "predicted_peak_memory_bytes");
  s.prediction_error = mean_max(top, "prediction_error");
  if (const auto documents = figure(top, "documents")) {
    s.documents_in = count_or(*documents, "in", 0);
    s.documents_out = count_or(*documents, "out", 0);
    s.documents_truncated = count_or(*documents, "truncated", 0);
    s.documents_split = count_or(*documents, "split", 0);
    s.documents_held = count_or(*documents, "held", 0);
  }
  if (const auto delay = figure(top, "token_delay_steps")) {
    s.token_delay_steps = quantiles(*delay);
    if (const auto by_domain = figure(*delay, "by_domain")) {
      if (!by_domain->value().is_object()) by_domain->fail("must be an object");
      for (const auto& entry : by_domain->value().items()) {
        s.token_delay_by_domain[entry.key()] = quantiles((*by_domain)[entry.key()]);
      }
    }
  }
  return s;
}

std::string to_json(const CorpusRecord& corpus) {
  const Json value = {
      {"path", corpus.path}, {"domains", corpus.domains}, {"documents", corpus.documents}, {"tokens", corpus.tokens}};
  return dump(value, 2) + "\n";
}

CorpusRecord corpus_record_from_json(std::string_view text, std::string_view where) {
  const nlohmann::json value = parse_json(text, where);
  const JsonReader top(value, where);
  CorpusRecord corpus;
  corpus.path = text_or_empty(top, "path");
  if (const auto domains = figure(top, "domains")) {
    for (const JsonReader& name : domains->items()) corpus.domains.push_back(name.text());
  }
  corpus.documents = count_or(top, "documents", 0);
  corpus.tokens = count_or(top, "tokens", 0);
  return corpus;
}

}  // namespace ballast
