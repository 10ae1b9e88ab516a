#include "cli/report_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ballast/diagnose/run_story.h"
#include "ballast/diagnose/time_by_cause.h"
#include "ballast/io/run_record_json.h"
#include "cli/placement_file.h"
#include "cli/run_selection.h"
#include "cli/step_placement.h"

namespace ballast::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kNumKinds = static_cast<int>(SpanKind::CHECKPOINT) + 1;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

template <class Get>
Json column(const std::vector<StepMetrics>& steps, Get get) {
  Json values = Json::array();
  for (const StepMetrics& step : steps) values.push_back(number(get(step)));
  return values;
}

Json steps_json(const std::vector<StepMetrics>& steps) {
  Json step_numbers = Json::array();
  for (const StepMetrics& step : steps) step_numbers.push_back(step.step);
  return {
      {"step", std::move(step_numbers)},
      {"loss", column(steps, [](const StepMetrics& m) { return m.loss; })},
      {"tokens", column(steps, [](const StepMetrics& m) { return static_cast<double>(m.tokens); })},
      {"measured", column(steps, [](const StepMetrics& m) { return m.step_seconds; })},
      {"predicted", column(steps, [](const StepMetrics& m) { return m.predicted_step_seconds; })},
      {"replayed", column(steps, [](const StepMetrics& m) { return m.replayed_step_seconds; })},
      {"imbalance_micro_batch", column(steps, [](const StepMetrics& m) { return m.imbalance_micro_batch; })},
      {"imbalance_cp", column(steps, [](const StepMetrics& m) { return m.imbalance_cp; })},
      {"imbalance_measured", column(steps, [](const StepMetrics& m) { return m.imbalance_measured; })},
      {"grad_norm", column(steps, [](const StepMetrics& m) { return m.grad_norm; })},
      {"lr", column(steps, [](const StepMetrics& m) { return m.lr; })},
  };
}

// Lengths as attention saw them (after cutting) in octaves, by domain: bin i holds lengths in [2^i, 2^(i+1)).
Json lengths_json(const RunFolder& run, const std::vector<std::string>& domains) {
  constexpr std::size_t kBins = 48;
  std::vector<std::vector<std::int64_t>> documents(domains.size(), std::vector<std::int64_t>(kBins));
  auto tokens = documents;
  std::size_t last = 0;
  for (const StepPlan& plan : run.plans) {
    for (const auto& pipeline : plan.micro_batches) {
      for (const MicroBatch& micro_batch : pipeline) {
        for (const Document& document : micro_batch.documents) {
          if (document.length == 0) continue;
          const auto bin = static_cast<std::size_t>(std::ilogb(static_cast<double>(document.length)));
          const auto domain = static_cast<std::size_t>(document.domain);
          last = std::max(last, bin);
          ++documents[domain][bin];
          tokens[domain][bin] += document.length;
        }
      }
    }
  }
  for (auto* table : {&documents, &tokens}) {
    for (auto& row : *table) row.resize(run.plans.empty() ? 0 : last + 1);
  }
  return {{"documents", documents}, {"tokens", tokens}};
}

// Tokens by the number of steps they waited, by domain.
Json delays_json(const RunFolder& run, std::size_t num_domains) {
  std::vector<std::map<std::int64_t, Tokens>> by_domain(num_domains);
  for (const StepPlan& plan : run.plans) {
    for (const auto& pipeline : plan.micro_batches) {
      for (const MicroBatch& micro_batch : pipeline) {
        for (const Document& document : micro_batch.documents) {
          by_domain[static_cast<std::size_t>(document.domain)][plan.step - document.due_step] += document.length;
        }
      }
    }
  }
  Json list = Json::array();
  for (const auto& delays : by_domain) {
    Json pairs = Json::array();
    for (const auto& [delay, tokens] : delays) pairs.push_back({delay, tokens});
    list.push_back(std::move(pairs));
  }
  return list;
}

// The corpus's names, and "domain 7" for one it does not name.
std::vector<std::string> domain_names(const RunFolder& run) {
  std::vector<std::string> names = run.corpus.domains;
  for (const StepPlan& plan : run.plans) {
    for (const auto& pipeline : plan.micro_batches) {
      for (const MicroBatch& micro_batch : pipeline) {
        for (const Document& document : micro_batch.documents) {
          while (static_cast<std::size_t>(document.domain) >= names.size()) {
            names.push_back("domain " + std::to_string(names.size()));
          }
        }
      }
    }
  }
  return names;
}

// The run's placement.json; without one, what its first step plan in rings says without a cost.
std::optional<Json> placement_of(const RunFolder& run) {
  if (std::optional<Json> written = read_placement_file(run.path)) return written;
  for (const StepPlan& plan : run.plans) {
    if (std::optional<Json> untimed = step_placement_json(plan, nullptr)) return untimed;
  }
  return std::nullopt;
}

// Seconds that all ranks together were busy in a kind of action, a step, without waits.
std::vector<double> busy_by_kind(const Timeline& timeline, const std::set<std::int64_t>& skip) {
  std::vector<double> busy(kNumKinds);
  std::set<std::int64_t> steps;
  const std::vector<OwnTime> own = own_times(timeline);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (skip.contains(timeline.spans[i].step)) continue;
    steps.insert(timeline.spans[i].step);
    busy[static_cast<std::size_t>(timeline.spans[i].kind)] += own[i].busy;
  }
  for (double& seconds : busy) seconds /= std::max<double>(1, static_cast<double>(steps.size()));
  return busy;
}

std::int64_t ticks(Seconds seconds) { return std::llround(seconds * 1e7); }

// The spans of one step as one flat list of 12 numbers each, in the order the page's script names.
Json step_timeline(const Timeline& timeline, const StepExtent& extent, const std::vector<std::size_t>& spans) {
  std::vector<std::int64_t> flat;
  flat.reserve(spans.size() * 12);
  for (const std::size_t i : spans) {
    const Span& s = timeline.spans[i];
    const std::int64_t begin = ticks(s.begin - extent.begin);
    flat.insert(flat.end(), {s.rank, static_cast<int>(s.kind), s.stage, s.micro_batch, s.layer, begin,
                             ticks(s.end - extent.begin) - begin, ticks(s.wait), ticks(s.lease), s.bytes, s.peer,
                             static_cast<int>(s.axis)});
  }
  return {{"step", extent.step}, {"duration", ticks(extent.duration())}, {"spans", std::move(flat)}};
}

std::map<std::int64_t, std::vector<std::size_t>> spans_by_step(const Timeline& timeline) {
  std::map<std::int64_t, std::vector<std::size_t>> by_step;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) by_step[timeline.spans[i].step].push_back(i);
  return by_step;
}

// Embeds whole steps, the most telling first and turn by turn over runs, until `max_spans` is reached. Every timeline
// gets at least one step, so a page is never empty because its runs are large.
void add_timelines(Json& data, const std::vector<RunFolder>& runs, const std::vector<RunRecord>& records,
                   const ReportOptions& options) {
  struct Lane {
    std::size_t run;
    const Timeline* timeline;
    std::map<std::int64_t, std::vector<std::size_t>> spans;
    std::map<std::int64_t, StepExtent> extents;
    std::vector<std::int64_t> wanted;
    Json steps = Json::array();
  };
  std::vector<Lane> lanes;
  // What one run's telling steps are, the others show too: a step is compared with the same step.
  std::vector<std::vector<std::int64_t>> telling;
  for (const RunRecord& record : records) telling.push_back(telling_steps(record.steps, options.max_steps));
  for (std::size_t r = 0; r < runs.size(); ++r) {
    std::vector<std::int64_t> wanted;
    for (std::size_t k = 0; k < options.max_steps; ++k) {
      for (std::size_t other = 0; other < runs.size(); ++other) {
        const std::size_t of = (r + other) % runs.size();
        if (k < telling[of].size() && std::find(wanted.begin(), wanted.end(), telling[of][k]) == wanted.end()) {
          wanted.push_back(telling[of][k]);
        }
      }
    }
    for (const Timeline& timeline : runs[r].timelines) {
      Lane lane{r, &timeline, spans_by_step(timeline), {}, {}, Json::array()};
      for (const StepExtent& extent : step_extents(timeline)) lane.extents[extent.step] = extent;
      for (const std::int64_t step : wanted) {
        if (lane.spans.contains(step) && lane.wanted.size() < options.max_steps) lane.wanted.push_back(step);
      }
      lanes.push_back(std::move(lane));
    }
  }
  std::size_t embedded = 0;
  std::size_t steps_there = 0;
  std::size_t steps_shown = 0;
  for (const Lane& lane : lanes) steps_there += lane.spans.size();
  for (std::size_t k = 0; k < options.max_steps; ++k) {
    std::size_t round = 0;
    for (const Lane& lane : lanes) round += k < lane.wanted.size() ? lane.spans.at(lane.wanted[k]).size() : 0;
    if (k > 0 && embedded + round > options.max_spans) break;
    embedded += round;
    for (Lane& lane : lanes) {
      if (k >= lane.wanted.size()) continue;
      const std::int64_t step = lane.wanted[k];
      lane.steps.push_back(step_timeline(*lane.timeline, lane.extents.at(step), lane.spans.at(step)));
      ++steps_shown;
    }
  }
  for (Json& run : data["runs"]) run["timelines"] = Json::object();
  for (Lane& lane : lanes) data["runs"][lane.run]["timelines"][lane.timeline->source] = std::move(lane.steps);
  data["left_out"] = {{"timeline_steps", steps_there - steps_shown}, {"timeline_steps_shown", steps_shown}};
}

}  // namespace

std::vector<std::int64_t> telling_steps(const std::vector<StepMetrics>& steps, std::size_t count) {
  std::vector<std::size_t> by_time(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) by_time[i] = i;
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a].step_seconds < steps[b].step_seconds; });
  std::vector<std::int64_t> chosen;
  const auto choose = [&](std::size_t index) {
    const std::int64_t step = steps[index].step;
    if (chosen.size() < count && std::find(chosen.begin(), chosen.end(), step) == chosen.end()) chosen.push_back(step);
  };
  if (steps.empty()) return chosen;
  choose(by_time[(steps.size() - 1) / 2]);
  choose(by_time.back());
  choose(0);
  choose(steps.size() - 1);
  for (std::size_t i = 0; i < count; ++i) choose(i * (steps.size() - 1) / std::max<std::size_t>(1, count - 1));
  for (std::size_t i = 0; i < steps.size(); ++i) choose(i);
  return chosen;
}

Json report_data(const std::vector<RunFolder>& runs, const ReportOptions& options) {
  Json cause_names = Json::array();
  for (std::size_t i = 0; i < kNumCauses; ++i) cause_names.push_back(to_string(static_cast<Cause>(i)));
  Json kind_names = Json::array();
  for (int i = 0; i < kNumKinds; ++i) kind_names.push_back(to_string(static_cast<SpanKind>(i)));
  Json axis_names = Json::array();
  for (int i = 0; i <= static_cast<int>(Axis::world); ++i) axis_names.push_back(to_string(static_cast<Axis>(i)));
  Json data = {{"command", options.command},
               {"date", options.date},
               {"skip_steps", options.skip_steps},
               {"cause_names", std::move(cause_names)},
               {"kind_names", std::move(kind_names)},
               {"axis_names", std::move(axis_names)},
               {"runs", Json::array()}};
  std::vector<RunEvidence> evidence;
  std::vector<RunRecord> records;
  for (const RunFolder& run : runs) {
    records.push_back(record_of(run, options.skip_steps));
    const RunRecord& record = records.back();
    const SpeedSource source = speed_source(record.steps);
    std::set<std::int64_t> skip;
    for (std::size_t i = 0; i < static_cast<std::size_t>(options.skip_steps); ++i) skip.insert(run.metrics[i].step);
    const std::vector<std::string> domains = domain_names(run);
    Json entry = {
        {"name", run.name},
        {"folder", run.path.string()},
        {"finished", run.finished},
        {"notes", run.notes},
        {"summary", Json::parse(to_json(run.summary))},
        {"corpus", {{"path", run.corpus.path}, {"documents", run.corpus.documents}, {"tokens", run.corpus.tokens}}},
        {"dims", {{"dp", run.summary.parallel.dp}, {"pp", run.summary.parallel.pp}, {"cp", run.summary.parallel.cp}}},
        {"source", to_string(source)},
        {"tokens_per_second",
         {{"measured", number(tokens_per_second(record.steps, SpeedSource::measured))},
          {"replayed", number(tokens_per_second(record.steps, SpeedSource::replayed))},
          {"predicted", number(tokens_per_second(record.steps, SpeedSource::predicted))}}},
        {"steps", steps_json(run.metrics)},
        {"domains", domains},
        {"lengths", lengths_json(run, domains)},
        {"delays", delays_json(run, domains.size())},
        {"causes", Json::object()},
        {"kinds", Json::object()}};
    if (std::optional<Json> placement = placement_of(run)) entry["placement"] = std::move(*placement);
    RunEvidence seen{record, {}};
    for (const Timeline& timeline : run.timelines) {
      Json by_rank = Json::array();
      for (const CauseSeconds& rank : time_by_cause(timeline, skip)) by_rank.push_back(rank.seconds);
      entry["causes"][timeline.source] = std::move(by_rank);
      entry["kinds"][timeline.source] = busy_by_kind(timeline, skip);
      if (timeline.source == to_string(source)) seen.longest_wait = longest_wait(timeline, skip);
    }
    data["runs"].push_back(std::move(entry));
    evidence.push_back(std::move(seen));
  }
  const RunStory story = tell_story(evidence);
  constexpr std::array kVerdicts{"single", "faster", "slower", "no_difference"};
  data["story"] = {{"verdict", kVerdicts[static_cast<std::size_t>(story.verdict)]},
                   {"headline", story.headline},
                   {"details", story.details}};
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const RunComparison comparison = compare_runs(records[0], records[i]);
    Json differences = Json::array();
    for (const Difference& d : comparison.differences) {
      differences.push_back({{"what", d.what}, {"base", d.base}, {"other", d.other}, {"intended", d.intended}});
    }
    data["runs"][i]["comparison"] = {{"source", to_string(comparison.source)},
                                     {"ratio", comparison.speed.ratio},
                                     {"low", comparison.speed.low},
                                     {"high", comparison.speed.high},
                                     {"predicted_ratio", number(comparison.predicted_ratio)},
                                     {"loss_difference", number(comparison.loss_difference)},
                                     {"late_loss_difference", number(comparison.late_loss_difference)},
                                     {"differences", std::move(differences)}};
  }
  add_timelines(data, runs, records, options);
  return data;
}

}  // namespace ballast::cli
