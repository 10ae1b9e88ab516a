// What holds of every packer on every stream: caps kept, every token packed once, parts in one piece, state restored.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/packing/streams.h"

namespace ballast {
namespace {

using testing::pack_all;
using testing::parts_by_document;
using testing::source_of;

const std::unique_ptr<CostModel> kCost = make_synthetic_cost(24, 1);

struct Case {
  PackingSpec spec;
  std::vector<Tokens> lengths;
};

void showValue(const Case& c, std::ostream& out) {
  out << c.spec.packer << " window " << c.spec.window << " cap " << c.spec.cap() << " N " << c.spec.micro_batches
      << " K " << c.spec.global_batches << " oversize " << to_string(c.spec.oversize) << " cut "
      << c.spec.cut_at_windows << " max delay " << c.spec.max_delay << " swing " << c.spec.token_swing << " max held "
      << c.spec.max_held << " max documents " << c.spec.max_documents << " queues [";
  for (const Tokens threshold : c.spec.queues) out << threshold << " ";
  out << "] lengths [";
  for (const Tokens length : c.lengths) out << length << " ";
  out << "]";
}

void without_bounds(PackingSpec& spec) {
  spec.token_swing = 0;
  spec.max_held = 0;
  spec.max_documents = 0;
  spec.mix_weight = 0;
}

rc::Gen<Case> any_case() {
  return rc::gen::exec([] {
    Case c;
    c.spec.packer = *rc::gen::elementOf(packer_names());
    c.spec.window = *rc::gen::inRange<Tokens>(1, 70);
    c.spec.micro_batches = *rc::gen::inRange(1, 9);
    c.spec.global_batches = *rc::gen::inRange(1, 5);
    if (c.spec.packer == "fixed-solver") {  // a search of many windows takes seconds; its properties are those of few
      c.spec.micro_batches = *rc::gen::inRange(1, 3);
      c.spec.global_batches = *rc::gen::inRange(1, 3);
    }
    c.spec.max_tokens = *rc::gen::element<Tokens>(0, c.spec.window, c.spec.window + 1, c.spec.window * 3 / 2);
    c.spec.max_delay = *rc::gen::element(0, 0, 1, 3);
    c.spec.oversize = *rc::gen::element(Oversize::truncate, Oversize::split);
    c.spec.cut_at_windows = *rc::gen::arbitrary<bool>();
    c.spec.queues = *rc::gen::elementOf(std::vector<std::vector<Tokens>>{
        {}, {c.spec.window}, {1 + c.spec.window / 2, 1 + c.spec.window}, {1, 2, 3 + c.spec.window / 2}});
    if (c.spec.variable_length()) {
      c.spec.token_swing = *rc::gen::element(0.0, 0.0, 0.1, 0.9);
      c.spec.max_held = *rc::gen::element<Tokens>(0, 0, 1, 3 * c.spec.window);
      c.spec.max_documents = *rc::gen::element(0, 0, 1, 3);
    }
    if (c.spec.packer == "pool") c.spec.mix_weight = *rc::gen::element(0.0, 0.5);
    c.lengths = *rc::gen::container<std::vector<Tokens>>(
        rc::gen::oneOf(rc::gen::inRange<Tokens>(0, 2), rc::gen::inRange<Tokens>(0, c.spec.window + 1),
                       rc::gen::inRange<Tokens>(0, 3 * c.spec.window)));
    return c;
  });
}

RC_GTEST_PROP(EveryPacker, KeepsTheCapAndTheNumberOfMicroBatches, ()) {
  const Case c = *any_case();
  const Tokens cap = c.spec.variable_length() ? c.spec.cap() : c.spec.window;
  std::int64_t number = 0;
  for (const PackedStep& step : pack_all(c.spec, *kCost, c.lengths)) {
    RC_ASSERT(step.step == number++);
    RC_ASSERT(step.micro_batches.size() == static_cast<std::size_t>(c.spec.micro_batches));
    RC_ASSERT(step.violations(cap).empty());
    for (const MicroBatch& micro_batch : step.micro_batches) {
      RC_ASSERT(c.spec.max_documents == 0 ||
                micro_batch.documents.size() <= static_cast<std::size_t>(c.spec.max_documents));
    }
  }
}

RC_GTEST_PROP(EveryPacker, PacksEveryTokenOnce, ()) {
  const Case c = *any_case();
  const auto parts = parts_by_document(pack_all(c.spec, *kCost, c.lengths));
  RC_ASSERT(parts.size() == c.lengths.size());
  for (const auto& [id, runs] : parts) {
    const Tokens whole = c.lengths[static_cast<std::size_t>(id)];
    const Tokens expected = c.spec.oversize == Oversize::truncate ? std::min(whole, c.spec.window) : whole;
    Tokens at = 0;
    for (const Document& run : runs) {
      RC_ASSERT(run.begin == at);
      at += run.length;
      RC_ASSERT(run.ends == (at == expected));
    }
    RC_ASSERT(at == expected);
  }
}

RC_GTEST_PROP(EveryPacker, CountsDocumentsInAsDocumentsOutAndHeld, ()) {
  const Case c = *any_case();
  PackedStream stream(c.spec, *kCost, source_of(c.lengths));
  Tokens out = 0;
  while (const auto step = stream.next()) {
    out += step->num_tokens();
    const PackerState state = stream.state();
    const PackingCounts& counts = state.counts;
    RC_ASSERT(counts.documents_out <= counts.documents_in);
    Tokens in = 0;
    for (std::int64_t i = 0; i < counts.documents_in; ++i) in += c.lengths[static_cast<std::size_t>(i)];
    RC_ASSERT(in == out + state.held_tokens() + counts.truncated_tokens);
  }
  RC_ASSERT(stream.counts().documents_in == static_cast<std::int64_t>(c.lengths.size()));
  RC_ASSERT(stream.counts().documents_out == stream.counts().documents_in);
  RC_ASSERT(stream.state().held_tokens() == 0);
}

RC_GTEST_PROP(EveryPacker, GoesOnFromItsStateWithTheSameSteps, ()) {
  const Case c = *any_case();
  const std::vector<PackedStep> whole = pack_all(c.spec, *kCost, c.lengths);
  PackedStream first(c.spec, *kCost, source_of(c.lengths));
  const auto stop =
      static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, static_cast<std::int64_t>(whole.size()) + 1));
  for (std::size_t i = 0; i < stop; ++i) first.next();
  const PackerState state = first.state();
  RC_ASSERT(state.violations().empty());

  PackedStream second(c.spec, *kCost, source_of(c.lengths, static_cast<std::size_t>(state.counts.documents_in)));
  second.restore(state);
  RC_ASSERT(second.state() == state);
  for (std::size_t i = stop; i < whole.size(); ++i) {
    const auto step = second.next();
    RC_ASSERT(step.has_value());
    RC_ASSERT(*step == whole[i]);
  }
  RC_ASSERT(!second.next().has_value());
  RC_ASSERT(second.counts() == [&] {
    while (first.next()) {
    }
    return first.counts();
  }());
}

RC_GTEST_PROP(EveryPacker, SeesEqualPiecesWhereDocumentsAreCutAtWindows, ()) {
  Case c = *any_case();
  c.spec.cut_at_windows = true;
  without_bounds(c.spec);
  const auto pieces = [&](const std::string& packer) {
    c.spec.packer = packer;
    std::map<std::int64_t, std::vector<std::pair<Tokens, Tokens>>> runs;
    for (const auto& [id, parts] : parts_by_document(pack_all(c.spec, *kCost, c.lengths))) {
      for (const Document& part : parts) runs[id].emplace_back(part.begin, part.length);
    }
    return runs;
  };
  RC_ASSERT(pieces("plain") == pieces("wlb"));
  RC_ASSERT(pieces("plain") == pieces("fixed-greedy"));
  RC_ASSERT(pieces("plain") == pieces("pool"));
}

RC_GTEST_PROP(PlainPacker, FillsEveryWindowButTheLast, ()) {
  Case c = *any_case();
  without_bounds(c.spec);
  c.spec.packer = "plain";
  bool room_seen = false;
  std::pair<std::int64_t, Tokens> last{-1, -1};
  for (const PackedStep& step : pack_all(c.spec, *kCost, c.lengths)) {
    for (const MicroBatch& window : step.micro_batches) {
      RC_ASSERT(!room_seen || window.num_tokens() == 0);
      room_seen = room_seen || window.num_tokens() < c.spec.window;
      for (const Document& document : window.documents) {
        RC_ASSERT(last < std::pair(document.arrival, document.begin));
        last = {document.arrival, document.begin};
      }
    }
  }
}

}  // namespace
}  // namespace ballast
