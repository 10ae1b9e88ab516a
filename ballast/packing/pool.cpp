#include "ballast/packing/pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ballast/packing/bins.h"
#include "ballast/packing/release.h"

namespace ballast {

namespace {

constexpr Tokens kLongShare = 8;      // of a window: a document of S/8 tokens is long
constexpr double kDelayPrice = 0.06;  // of a whole step's tokens for a step, in imbalance; see docs/algorithms.md

class PoolPacker final : public Packer {
 public:
  PoolPacker(const PackingSpec& spec, const CostModel& cost) : spec_(spec), cost_(cost) { state_.queues.resize(1); }

  std::vector<PackedStep> add(std::vector<Document> batch) override {
    ++state_.batches_taken;
    if (spec_.mix_weight > 0) count_domains(batch);
    std::vector<Document> fresh;
    for (const Document& document : batch) (is_long(document) ? pool() : fresh).push_back(document);
    return steps_of(pack(std::move(fresh)), state_);
  }

  // Nothing more will come to level with: all that is held is packed longest first, over as many steps as it takes.
  std::vector<PackedStep> flush(std::vector<Document> last_batch) override {
    if (spec_.mix_weight > 0) count_domains(last_batch);
    hold_longest_first(state_, std::move(last_batch));
    std::vector<PackedStep> steps;
    while (!state_.pending.empty()) steps.push_back(pack({}));
    return steps;
  }

  Tokens backlog_tokens() const override { return total_tokens(state_.pending); }

  const PackerState& state() const override { return state_; }

  void restore(PackerState state) override {
    if (state.queues.size() != 1) {
      throw UserError("packer state has " + std::to_string(state.queues.size()) +
                      " queues, the pool packer has 1: resume with the packer it was made with");
    }
    state_ = std::move(state);
    if (spec_.mix_weight > 0) {
      know_domains(state_.pending);
      know_domains(pool());
    }
  }

 private:
  bool is_long(const Document& document) const { return document.length * kLongShare >= spec_.window; }
  // In order of arrival.
  std::vector<Document>& pool() { return state_.queues[0]; }

  PackedStep pack(std::vector<Document> fresh) {
    Bins bins(spec_, cost_);
    release(fresh, bins);
    std::vector<Document> left_over;
    sort_longest_first(fresh);
    bins.place_all(state_.pending, left_over);
    bins.place_all(fresh, left_over);
    state_.pending = std::move(left_over);
    return {.step = state_.next_step++, .micro_batches = bins.take()};
  }

  // Chosen documents of the pool into their micro-batches.
  void release(const std::vector<Document>& fresh, Bins& bins) {
    if (pool().empty()) return;
    ReleaseProblem problem{.micro_batches = spec_.micro_batches,
                           .cap = spec_.cap(),
                           .nominal = spec_.window * spec_.micro_batches,
                           .token_swing = spec_.token_swing,
                           .delay_price = kDelayPrice};
    for (const std::vector<Document>* documents :
         std::initializer_list<const std::vector<Document>*>{&state_.pending, &fresh}) {
      for (const Document& document : *documents) {
        problem.short_tokens += document.length;
        problem.short_work += cost_.document(document.length);
      }
    }
    if (spec_.mix_weight > 0) want_mix(problem, fresh);
    std::vector<std::size_t> order(pool().size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return pool()[a].length > pool()[b].length; });
    for (const std::size_t i : order) {
      const Document& document = pool()[i];
      const std::int64_t waited = state_.next_step - document.due_step;
      problem.candidates.push_back({.tokens = document.length,
                                    .work = cost_.document(document.length),
                                    .domain = document.domain,
                                    .waited = static_cast<double>(waited),
                                    .must = spec_.max_delay > 0 && waited >= spec_.max_delay});
    }
    // What is too much to be held must go, oldest first: the pool is in order of arrival.
    std::size_t too_old = 0;
    Tokens held = total_tokens(pool());
    while (spec_.max_held > 0 && held > spec_.max_held) held -= pool()[too_old++].length;
    for (std::size_t c = 0; c < order.size(); ++c) problem.candidates[c].must |= order[c] < too_old;
    const Release chosen = choose_release(problem);
    std::vector<char> gone(pool().size(), 0);
    for (std::size_t c = 0; c < order.size(); ++c) {
      const Document& document = pool()[order[c]];
      if (chosen.bin[c] < 0 || !bins.fits(static_cast<std::size_t>(chosen.bin[c]), document)) continue;
      bins.put(static_cast<std::size_t>(chosen.bin[c]), document);
      gone[order[c]] = 1;
    }
    std::vector<Document> kept;
    for (std::size_t i = 0; i < gone.size(); ++i) {
      if (!gone[i]) kept.push_back(pool()[i]);
    }
    pool() = std::move(kept);
  }

  void know_domains(const std::vector<Document>& documents) {
    for (const Document& document : documents) {
      const auto domain = static_cast<std::size_t>(document.domain);
      if (domain >= state_.arrived_tokens.size()) state_.arrived_tokens.resize(domain + 1);
    }
  }

  void count_domains(const std::vector<Document>& batch) {
    know_domains(batch);
    for (const Document& document : batch) {
      state_.arrived_tokens[static_cast<std::size_t>(document.domain)] += document.length;
    }
  }

  // The mix of all that has arrived so far.
  void want_mix(ReleaseProblem& problem, const std::vector<Document>& fresh) const {
    problem.mix_weight = spec_.mix_weight;
    const auto all =
        static_cast<double>(std::accumulate(state_.arrived_tokens.begin(), state_.arrived_tokens.end(), Tokens{0}));
    for (const Tokens tokens : state_.arrived_tokens) {
      problem.mix.push_back(all > 0 ? static_cast<double>(tokens) / all : 0);
    }
    problem.short_domain_tokens.resize(state_.arrived_tokens.size());
    for (const Document& document : state_.pending) {
      problem.short_domain_tokens[static_cast<std::size_t>(document.domain)] += document.length;
    }
    for (const Document& document : fresh) {
      problem.short_domain_tokens[static_cast<std::size_t>(document.domain)] += document.length;
    }
  }

  PackingSpec spec_;
  const CostModel& cost_;
  PackerState state_;
};

}  // namespace

std::unique_ptr<Packer> make_pool_packer(const PackingSpec& spec, const CostModel& cost) {
  return std::make_unique<PoolPacker>(spec, cost);
}

}  // namespace ballast
