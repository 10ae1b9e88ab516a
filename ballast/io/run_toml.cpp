#include "ballast/io/run_toml.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

#include "ballast/io/atomic_file.h"
#include "ballast/io/size_text.h"

namespace ballast {

namespace {

// Names every key once, for reading and for writing: `visit(section, key, field)`.
template <class Spec, class Visit>
void for_each_key(Spec& spec, Visit&& visit) {
  visit("run", "folder", spec.folder);
  visit("run", "seed", spec.seed);
  visit("corpus", "path", spec.corpus);
  visit("corpus", "shuffle", spec.shuffle);
  visit("corpus", "epochs", spec.epochs);
  visit("corpus", "documents", spec.documents);
  visit("model", "num_layers", spec.model.num_layers);
  visit("model", "hidden_dim", spec.model.hidden_dim);
  visit("model", "num_heads", spec.model.num_heads);
  visit("model", "num_kv_heads", spec.model.num_kv_heads);
  visit("model", "head_dim", spec.model.head_dim);
  visit("model", "ffn_dim", spec.model.ffn_dim);
  visit("model", "vocab_size", spec.model.vocab_size);
  visit("model", "rope_theta", spec.model.rope_theta);
  visit("model", "norm_eps", spec.model.norm_eps);
  visit("model", "tied_head", spec.model.tied_head);
  visit("parallel", "dp", spec.parallel.dp);
  visit("parallel", "pp", spec.parallel.pp);
  visit("parallel", "cp", spec.parallel.cp);
  visit("parallel", "tp", spec.tensor_parallel);
  visit("parallel", "overlap_tp", spec.overlap_tp);
  visit("parallel", "zero", spec.zero);
  visit("parallel", "recompute", spec.recompute);
  visit("parallel", "mapping", spec.mapping);
  visit("cluster", "file", spec.cluster);
  visit("workload", "lengths", spec.lengths);
  visit("schedule", "name", spec.schedule.name);
  visit("schedule", "virtual_stages", spec.schedule.virtual_stages);
  visit("schedule", "round_size", spec.schedule.round_size);
  visit("schedule", "stage_layers", spec.schedule.stage_layers);
  visit("packing", "packer", spec.packing.packer);
  visit("packing", "window", spec.packing.window);
  visit("packing", "micro_batches", spec.packing.micro_batches);
  visit("packing", "global_batches", spec.packing.global_batches);
  visit("packing", "max_tokens", spec.packing.max_tokens);
  visit("packing", "queues", spec.packing.queues);
  visit("packing", "tune_queues", spec.packing.tune_queues);
  visit("packing", "max_delay", spec.packing.max_delay);
  visit("packing", "token_swing", spec.packing.token_swing);
  visit("packing", "max_held", spec.packing.max_held);
  visit("packing", "max_documents", spec.packing.max_documents);
  visit("packing", "mix_weight", spec.packing.mix_weight);
  visit("packing", "oversize", spec.packing.oversize);
  visit("packing", "cut_at_windows", spec.packing.cut_at_windows);
  visit("sharding", "strategy", spec.sharding);
  visit("sharding", "rank_tokens", spec.rank_tokens);
  visit("sharding", "moves", spec.moves);
  visit("sharding", "routing", spec.routing);
  visit("cost", "profile", spec.profile);
  visit("cost", "synthetic", spec.synthetic_cost);
  visit("training", "steps", spec.training.steps);
  visit("training", "precision", spec.training.precision);
  visit("training", "lr", spec.training.lr);
  visit("training", "min_lr", spec.training.min_lr);
  visit("training", "warmup_steps", spec.training.warmup_steps);
  visit("training", "weight_decay", spec.training.weight_decay);
  visit("training", "beta1", spec.training.beta1);
  visit("training", "beta2", spec.training.beta2);
  visit("training", "eps", spec.training.eps);
  visit("training", "clip_norm", spec.training.clip_norm);
  visit("training", "checkpoint_every", spec.training.checkpoint_every);
  visit("training", "keep_checkpoints", spec.training.keep_checkpoints);
  visit("launch", "timeout_seconds", spec.launch.timeout_seconds);
  visit("launch", "lease", spec.launch.lease);
  visit("launch", "threads", spec.launch.threads);
  visit("launch", "pin", spec.launch.pin);
  visit("software", "layer_launch_seconds", spec.software.layer_launch_seconds);
  visit("software", "attention", spec.software.attention);
  visit("software", "attention_bytes", spec.software.attention_bytes);
  visit("software", "fused", spec.software.fused);
  visit("software", "optimizer_bytes", spec.software.optimizer_bytes);
  visit("software", "accumulation_bytes", spec.software.accumulation_bytes);
  visit("faults", "slow_gpus", spec.faults.slow_gpus);
  visit("faults", "slow_nics", spec.faults.slow_nics);
  visit("faults", "failures_per_gpu_day", spec.faults.failures_per_gpu_day);
  visit("faults", "restart_seconds", spec.faults.restart_seconds);
  visit("storage", "bytes_per_second", spec.storage.bytes_per_second);
  visit("storage", "gpu_bytes_per_second", spec.storage.gpu_bytes_per_second);
  visit("storage", "background_checkpoints", spec.storage.background_checkpoints);
  visit("storage", "loader_bytes_per_token", spec.storage.loader_bytes_per_token);
  visit("plan", "gpus", spec.plan.gpus);
  visit("plan", "tp", spec.plan.tp);
  visit("plan", "cp", spec.plan.cp);
  visit("plan", "pp", spec.plan.pp);
  visit("plan", "virtual_stages", spec.plan.virtual_stages);
  visit("plan", "zero", spec.plan.zero);
  visit("plan", "recompute", spec.plan.recompute);
  visit("plan", "windows", spec.plan.windows);
  visit("plan", "packers", spec.plan.packers);
  visit("plan", "shardings", spec.plan.shardings);
  visit("plan", "mappings", spec.plan.mappings);
  visit("plan", "steps", spec.plan.steps);
  visit("plan", "final_steps", spec.plan.final_steps);
  visit("plan", "keep", spec.plan.keep);
}

std::string text_of(const toml::node& node) {
  std::ostringstream out;
  if (const auto* value = node.as_string()) return '"' + value->get() + '"';
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

// Turns one TOML value into one field; says what the field takes where it cannot.
class FieldReader {
 public:
  FieldReader(const toml::node& node, std::string what) : node_(node), what_(std::move(what)) {}

  void read(std::string& field) const {
    if (const auto value = node_.value<std::string>()) {
      field = *value;
    } else {
      refuse("a string");
    }
  }
  void read(bool& field) const {
    if (!node_.is_boolean()) refuse("true or false");
    field = *node_.value<bool>();
  }
  void read(int& field) const {
    const std::int64_t value = integer("a whole number");
    if (value < INT32_MIN || value > INT32_MAX) refuse("a whole number of at most 2147483647");
    field = static_cast<int>(value);
  }
  void read(std::int64_t& field) const { field = integer("a whole number, or a size such as \"16K\""); }
  void read(std::uint64_t& field) const {
    const std::int64_t value = integer("a whole number of 0 or more");
    if (value < 0) refuse("a whole number of 0 or more");
    field = static_cast<std::uint64_t>(value);
  }
  void read(double& field) const {
    if (!node_.is_number()) refuse("a number");
    field = *node_.value<double>();
  }
  void read(std::vector<Tokens>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("a list of token counts");
    field.clear();
    for (const toml::node& item : *list) field.push_back(FieldReader(item, what_).integer("a list of token counts"));
  }
  void read(std::vector<int>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("a list of whole numbers");
    field.clear();
    for (const toml::node& item : *list) FieldReader(item, what_).read(field.emplace_back());
  }
  void read(std::vector<double>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("a list of numbers");
    field.clear();
    for (const toml::node& item : *list) {
      if (!item.is_number()) refuse("a list of numbers");
      field.push_back(*item.value<double>());
    }
  }
  void read(std::vector<std::string>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("a list of names");
    field.clear();
    for (const toml::node& item : *list) FieldReader(item, what_).read(field.emplace_back());
  }
  void read(std::vector<std::vector<double>>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("a list of [GPU, factor]");
    field.clear();
    for (const toml::node& item : *list) {
      std::optional<std::vector<double>> entry;
      FieldReader(item, what_).read(entry);
      field.push_back(entry.value_or(std::vector<double>{}));
    }
  }
  void read(std::optional<std::vector<double>>& field) const {
    const toml::array* list = node_.as_array();
    if (list == nullptr) refuse("two numbers, [A, B]");
    field.emplace();
    for (const toml::node& item : *list) {
      if (!item.is_number()) refuse("two numbers, [A, B]");
      field->push_back(*item.value<double>());
    }
    if (field->empty()) field.reset();
  }
  void read(Precision& field) const { read_name(field, {Precision::float64, Precision::float32, Precision::bfloat16}); }
  void read(Oversize& field) const { read_name(field, {Oversize::truncate, Oversize::split, Oversize::refuse}); }

 private:
  std::int64_t integer(const char* allowed) const {
    if (node_.is_integer()) return *node_.value<std::int64_t>();
    if (const auto text = node_.value<std::string>()) {
      if (const auto size = parse_size(*text)) return *size;
    }
    refuse(allowed);
  }

  template <class Enum>
  void read_name(Enum& field, const std::vector<Enum>& values) const {
    std::vector<std::string> names;
    for (const Enum value : values) names.push_back(to_string(value));
    const auto text = node_.value<std::string>();
    for (const Enum value : values) {
      if (text == to_string(value)) {
        field = value;
        return;
      }
    }
    const std::string near = text ? nearest_name(*text, names) : "";
    refuse("one of " + join(names) + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }

  [[noreturn]] void refuse(const std::string& allowed) const {
    throw UserError(what_ + " = " + text_of(node_) + ": must be " + allowed);
  }

  const toml::node& node_;
  std::string what_;
};

void refuse_unknown(const toml::table& table, std::string_view where) {
  std::vector<std::string> sections;
  std::vector<std::pair<std::string, std::string>> keys{{"model", "preset"}};
  RunSpec spec;
  for_each_key(spec, [&](const char* section, const char* key, auto&) {
    if (sections.empty() || sections.back() != section) sections.emplace_back(section);
    keys.emplace_back(section, key);
  });
  const auto unknown = [&](const std::string& what, std::string_view name, const std::vector<std::string>& valid) {
    const std::string near = nearest_name(name, valid);
    throw UserError(fmt::format("{}: {} is unknown; {}", where, what,
                                near.empty() ? "valid: " + join(valid) : "did you mean \"" + near + "\"?"));
  };
  for (const auto& [section_key, section_node] : table) {
    const std::string section(section_key.str());
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      unknown("section [" + section + "]", section, sections);
    }
    if (!section_node.is_table()) {
      throw UserError(fmt::format("{}: {} must be a section, [{}]", where, section, section));
    }
    std::vector<std::string> valid;
    for (const auto& [s, k] : keys) {
      if (s == section) valid.push_back(k);
    }
    for (const auto& [key, node] : *section_node.as_table()) {
      if (std::find(valid.begin(), valid.end(), std::string(key.str())) == valid.end()) {
        unknown(fmt::format("key \"{}\" in [{}]", key.str(), section), key.str(), valid);
      }
    }
  }
}

toml::table parse_table(std::string_view text, std::string_view where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: {}", where, error.source().begin.line, error.description()));
  }
}

void apply_override(toml::table& table, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::size_t dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals || dot == 0) {
    throw UserError("--set " + text + ": must be section.key=value");
  }
  const std::string where = "--set " + text;
  const std::string section = text.substr(0, dot);
  const std::string key = text.substr(dot + 1, equals - dot - 1);
  const std::string value = text.substr(equals + 1);
  toml::table parsed;
  try {
    parsed = toml::parse("value = " + value);
  } catch (const toml::parse_error&) {
    parsed.insert_or_assign("value", value);  // a bare word is a string
  }
  if (!table.contains(section)) table.insert(section, toml::table{});
  toml::table* target = table[section].as_table();
  if (target == nullptr) throw UserError(where + ": [" + section + "] is not a section");
  target->insert_or_assign(key, *parsed.get("value"));
}

void write_value(std::string& out, const std::string& value) {
  std::ostringstream quoted;
  quoted << toml::value<std::string>(value);
  out += quoted.str();
}
void write_value(std::string& out, bool value) { out += value ? "true" : "false"; }
void write_value(std::string& out, int value) { out += std::to_string(value); }
void write_value(std::string& out, std::int64_t value) { out += std::to_string(value); }
void write_value(std::string& out, std::uint64_t value) { out += std::to_string(value); }
void write_value(std::string& out, double value) {
  const std::string text = fmt::format("{}", value);
  out += text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
void write_value(std::string& out, Precision value) { out += '"' + to_string(value) + '"'; }
void write_value(std::string& out, Oversize value) { out += '"' + to_string(value) + '"'; }
template <class T>
void write_value(std::string& out, const std::vector<T>& values) {
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    write_value(out, values[i]);
  }
  out += ']';
}
void write_value(std::string& out, const std::optional<std::vector<double>>& values) {
  write_value(out, values.value_or(std::vector<double>{}));
}

}  // namespace

RunSpec run_spec_from_toml(std::string_view text, std::string_view where, const std::vector<std::string>& overrides) {
  toml::table table = parse_table(text, where);
  for (const std::string& override_text : overrides) apply_override(table, override_text);
  refuse_unknown(table, where);

  RunSpec spec;
  spec.model.vocab_size = 0;
  if (const toml::node* preset = table["model"]["preset"].node()) {
    std::string name;
    FieldReader(*preset, fmt::format("{}: [model] preset", where)).read(name);
    const auto model = model_preset(name);
    if (!model) {
      const std::string near = nearest_name(name, model_preset_names());
      throw UserError(fmt::format("{}: [model] preset = \"{}\": must be one of {}{}", where, name,
                                  join(model_preset_names()), near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    spec.model = *model;
    spec.model.vocab_size = 0;  // a corpus has its own
  }
  for_each_key(spec, [&](const char* section, const char* key, auto& field) {
    const toml::node* node = table[section][key].node();
    if (node != nullptr) FieldReader(*node, fmt::format("{}: [{}] {}", where, section, key)).read(field);
  });
  return spec;
}

RunSpec read_run_toml(const std::string& path, const std::vector<std::string>& overrides) {
  return run_spec_from_toml(read_file(path), path, overrides);
}

std::string to_toml(const RunSpec& spec) {
  std::string out;
  std::string current;
  // Of simulations and plans alone: not said where nothing was asked of them.
  std::vector<std::string> left_out;
  if (spec.software == SoftwareSpec{}) left_out.emplace_back("software");
  if (spec.faults == FaultSpec{}) left_out.emplace_back("faults");
  if (spec.storage == StorageSpec{}) left_out.emplace_back("storage");
  if (spec.plan == PlanSpec{}) left_out.emplace_back("plan");
  for_each_key(spec, [&](const char* section, const char* key, const auto& field) {
    if (std::find(left_out.begin(), left_out.end(), section) != left_out.end()) return;
    if (current != section) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
      current = section;
    }
    out += fmt::format("{} = ", key);
    write_value(out, field);
    out += '\n';
  });
  return out;
}

}  // namespace ballast
