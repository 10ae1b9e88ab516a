#include "ballast/io/run_record_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "ballast/base/error.h"

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

// An object under reading: knows where it came from, so that every complaint names file, line and key.
class Object {
 public:
  Object(const Json& value, std::string where, std::string prefix = "")
      : value_(value), where_(std::move(where)), prefix_(std::move(prefix)) {
    if (!value_.is_object()) fail(prefix_.empty() ? "the line" : prefix_, "is not an object");
  }

  const Json& value() const { return value_; }
  // Absent and null are the same: the run has no such figure.
  bool has(const char* key) const { return value_.contains(key) && !value_.at(key).is_null(); }

  Object object(const char* key) const { return {at(key), where_, prefix_ + key + "."}; }
  double number(const char* key) const {
    const Json& found = at(key);
    if (!found.is_number())
      fail(prefix_ + key, "must be a number, not " + found.dump(-1, ' ', true, Json::error_handler_t::replace));
    return found.get<double>();
  }
  double number_or_nan(const char* key) const {
    return value_.contains(key) && value_.at(key).is_null() ? std::numeric_limits<double>::quiet_NaN() : number(key);
  }
  double number_or(const char* key, double otherwise) const { return has(key) ? number(key) : otherwise; }
  std::optional<double> optional(const char* key) const {
    return has(key) ? std::optional<double>(number(key)) : std::nullopt;
  }
  std::int64_t integer(const char* key) const {
    const Json& found = at(key);
    if (!found.is_number_integer())
      fail(prefix_ + key, "must be a whole number, not " + found.dump(-1, ' ', true, Json::error_handler_t::replace));
    return found.get<std::int64_t>();
  }
  std::int64_t integer_or(const char* key, std::int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
  std::string text_or(const char* key, std::string otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_string()) fail(prefix_ + key, "must be a text");
    return at(key).get<std::string>();
  }
  std::optional<MeanMax> mean_max(const char* key) const {
    if (!has(key)) return std::nullopt;
    const Object inner = object(key);
    return MeanMax{inner.number("mean"), inner.number("max")};
  }
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw UserError(where_ + ": " + key + " " + what);
  }

 private:
  const Json& at(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) fail(prefix_ + key, "is missing");
    return *found;
  }

  const Json& value_;
  std::string where_;
  std::string prefix_;
};

Json parse(std::string_view text, std::string_view where) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) throw UserError(std::string(where) + ": is not JSON");
  return value;
}

Quantiles quantiles(const Object& object) {
  return {object.number("mean"), object.number("p50"), object.number("p99"), object.number("max")};
}

}  // namespace

std::string to_json(const StepMetrics& m) {
  const Json value = {
      {"step", m.step},
      {"loss", finite(m.loss)},
      {"tokens", m.tokens},
      {"labels", m.labels},
      {"step_seconds", m.step_seconds},
      {"tokens_per_second", m.tokens_per_second},
      {"grad_norm", finite(m.grad_norm)},
      {"lr", m.lr},
      {"imbalance", {{"micro_batch", finite(m.imbalance_micro_batch)}, {"cp", finite(m.imbalance_cp)}}},
      {"imbalance_measured", finite(m.imbalance_measured)},
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
  const Json value = parse(text, where);
  const Object line(value, std::string(where));
  StepMetrics m;
  m.step = line.integer("step");
  m.loss = line.number_or_nan("loss");
  m.tokens = line.integer("tokens");
  m.labels = line.integer_or("labels", m.tokens);
  m.step_seconds = line.number("step_seconds");
  if (!(m.step_seconds > 0)) line.fail("step_seconds", "must be above 0");
  if (m.tokens < 0) line.fail("tokens", "must be 0 or more");
  m.tokens_per_second = line.number_or("tokens_per_second", static_cast<double>(m.tokens) / m.step_seconds);
  m.grad_norm = line.has("grad_norm") ? line.number("grad_norm") : std::numeric_limits<double>::quiet_NaN();
  m.lr = line.number_or("lr", 0);
  if (line.has("imbalance")) {
    const Object imbalance = line.object("imbalance");
    m.imbalance_micro_batch = imbalance.optional("micro_batch");
    m.imbalance_cp = imbalance.optional("cp");
  }
  m.imbalance_measured = line.optional("imbalance_measured");
  m.predicted_step_seconds = line.optional("predicted_step_seconds");
  m.replayed_step_seconds = line.optional("replayed_step_seconds");
  m.planning_seconds = line.number_or("planning_seconds", 0);
  m.recording_seconds = line.number_or("recording_seconds", 0);
  m.wait_seconds = line.mean_max("wait_seconds");
  m.work_seconds = line.mean_max("work_seconds");
  m.token_delay_steps = line.mean_max("token_delay_steps");
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
  const Json value = parse(text, where);
  const Object top(value, std::string(where));
  RunSummary s;
  s.command = top.text_or("command", "");
  s.date = top.text_or("date", "");
  if (top.has("machine")) {
    s.device = top.object("machine").text_or("device", "");
    s.cores = static_cast<int>(top.object("machine").integer_or("cores", 0));
  }
  s.model = top.text_or("model", "");
  s.precision = top.text_or("precision", "");
  s.window = top.integer_or("window", 0);
  const Object parallel = top.object("parallel");
  s.parallel = {static_cast<int>(parallel.integer("dp")), static_cast<int>(parallel.integer("pp")),
                static_cast<int>(parallel.integer("cp"))};
  require_valid(s.parallel.violations(), where);
  s.virtual_stages = static_cast<int>(parallel.integer_or("virtual_stages", 1));
  s.packer = top.text_or("packer", "");
  s.sharding = top.text_or("sharding", "");
  s.profile = top.text_or("profile", "");
  s.seed = static_cast<std::uint64_t>(top.integer_or("seed", 0));
  s.steps = top.integer("steps");
  const Object loss = top.object("loss");
  s.loss_first = loss.number_or_nan("first");
  s.loss_last = loss.number_or_nan("last");
  s.tokens = top.integer("tokens");
  s.tokens_per_second = top.number("tokens_per_second");
  const Object step_seconds = top.object("step_seconds");
  s.step_seconds_mean = step_seconds.number("mean");
  s.step_seconds_p50 = step_seconds.number("p50");
  s.step_seconds_max = step_seconds.number("max");
  s.tokens_per_second_replayed = top.optional("tokens_per_second_replayed");
  if (top.has("imbalance")) {
    s.imbalance_micro_batch = top.object("imbalance").optional("micro_batch");
    s.imbalance_cp = top.object("imbalance").optional("cp");
  }
  s.imbalance_measured = top.optional("imbalance_measured");
  s.prediction_error = top.mean_max("prediction_error");
  if (top.has("documents")) {
    const Object documents = top.object("documents");
    s.documents_in = documents.integer_or("in", 0);
    s.documents_out = documents.integer_or("out", 0);
    s.documents_truncated = documents.integer_or("truncated", 0);
    s.documents_split = documents.integer_or("split", 0);
    s.documents_held = documents.integer_or("held", 0);
  }
  if (top.has("token_delay_steps")) {
    const Object delay = top.object("token_delay_steps");
    s.token_delay_steps = quantiles(delay);
    if (delay.has("by_domain")) {
      const Object by_domain = delay.object("by_domain");
      for (const auto& entry : by_domain.value().items()) {
        s.token_delay_by_domain[entry.key()] = quantiles(by_domain.object(entry.key().c_str()));
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
  const Json value = parse(text, where);
  const Object top(value, std::string(where));
  CorpusRecord corpus;
  corpus.path = top.text_or("path", "");
  if (top.has("domains")) {
    for (const Json& name : value.at("domains")) {
      if (!name.is_string()) top.fail("domains", "must be a list of names");
      corpus.domains.push_back(name.get<std::string>());
    }
  }
  corpus.documents = top.integer_or("documents", 0);
  corpus.tokens = top.integer_or("tokens", 0);
  return corpus;
}

}  // namespace ballast
