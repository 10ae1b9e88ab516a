#include "ballast/workload/document_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

namespace ballast {
namespace {

std::vector<std::int64_t> ids(DocumentStream& stream, int count) {
  std::vector<std::int64_t> found;
  for (int i = 0; i < count; ++i) found.push_back(stream.next()->id);
  return found;
}

DocumentStream stream_of(int documents, StreamOrder order) {
  std::vector<Tokens> lengths;
  std::vector<int> domains;
  for (int i = 0; i < documents; ++i) {
    lengths.push_back(10 * i);
    domains.push_back(i % 3);
  }
  return DocumentStream(lengths, domains, order);
}

TEST(DocumentStream, KeepsTheCorpusOrderWhereItIsNotShuffled) {
  DocumentStream stream = stream_of(3, {.shuffle = false});
  EXPECT_EQ(ids(stream, 7), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(DocumentStream, GivesADocumentItsLengthDomainAndOrdinal) {
  DocumentStream stream = stream_of(5, {.shuffle = false});
  stream.seek({.epoch = 2, .index = 4});
  EXPECT_EQ(stream.next(), (Document{.id = 4, .arrival = 14, .begin = 0, .length = 40, .domain = 1, .ends = true}));
}

// The order is part of what "the same seed gives the same run" promises: a change here changes every run.
TEST(DocumentStream, ShufflesAlikeOnEveryMachine) {
  DocumentStream stream = stream_of(8, {.shuffle = true, .seed = 7});
  EXPECT_EQ(ids(stream, 8), (std::vector<std::int64_t>{7, 4, 3, 2, 5, 1, 6, 0}));
  EXPECT_EQ(ids(stream, 8), (std::vector<std::int64_t>{7, 1, 3, 6, 5, 2, 0, 4}));
}

TEST(DocumentStream, TakesAnotherOrderForAnotherSeedAndForAnotherEpoch) {
  DocumentStream one = stream_of(50, {.seed = 1});
  DocumentStream two = stream_of(50, {.seed = 2});
  const auto first_epoch = ids(one, 50);
  EXPECT_NE(first_epoch, ids(two, 50));
  EXPECT_NE(first_epoch, ids(one, 50));
}

TEST(DocumentStream, EndsAfterItsLastEpoch) {
  DocumentStream stream = stream_of(4, {.num_epochs = 2});
  EXPECT_EQ(ids(stream, 8).size(), 8u);
  EXPECT_FALSE(stream.next());
  EXPECT_FALSE(stream.next());
}

TEST(DocumentStream, MeetsEveryDocumentOnceAnEpochUnderAnOrdinalThatNeverRepeats) {
  rc::check([](std::uint64_t seed, bool shuffled) {
    const int documents = *rc::gen::inRange(1, 60);
    DocumentStream stream = stream_of(documents, {.shuffle = shuffled, .seed = seed, .num_epochs = 3});
    std::int64_t arrival = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::set<std::int64_t> met;
      for (int i = 0; i < documents; ++i) {
        const Document document = stream.next().value();
        RC_ASSERT(document.violations().empty());
        RC_ASSERT(document.length == 10 * document.id);
        RC_ASSERT(document.arrival == arrival++);
        met.insert(document.id);
      }
      RC_ASSERT(met.size() == static_cast<std::size_t>(documents));
    }
    RC_ASSERT(!stream.next());
  });
}

TEST(DocumentStream, MeetsOnlyTheFirstDocumentsOfItsFirstOrderWhereTheyAreLimited) {
  DocumentStream all = stream_of(50, {.seed = 3});
  const auto first = ids(all, 7);
  DocumentStream few = stream_of(50, {.seed = 3, .num_epochs = 2, .num_documents = 7});
  EXPECT_EQ(few.num_documents(), 7);
  EXPECT_EQ(ids(few, 7), first);
  const auto again = ids(few, 7);
  EXPECT_EQ(std::set<std::int64_t>(again.begin(), again.end()), std::set<std::int64_t>(first.begin(), first.end()));
  EXPECT_NE(again, first);
  EXPECT_FALSE(few.next());
  EXPECT_EQ(stream_of(5, {.num_documents = 9}).num_documents(), 5);
}

TEST(DocumentStream, GoesOnFromAPositionAsIfItHadNeverStopped) {
  rc::check([](std::uint64_t seed, bool shuffled) {
    const int documents = *rc::gen::inRange(1, 40);
    const int taken = *rc::gen::inRange(0, 3 * documents);
    const StreamOrder order{.shuffle = shuffled, .seed = seed, .num_epochs = 4};
    DocumentStream whole = stream_of(documents, order);
    for (int i = 0; i < taken; ++i) whole.next();
    DocumentStream resumed = stream_of(documents, order);
    for (int i = *rc::gen::inRange(0, 2 * documents); i > 0; --i) resumed.next();  // wherever it stood before
    resumed.seek(whole.position());
    while (const auto expected = whole.next()) RC_ASSERT(resumed.next() == expected);
    RC_ASSERT(!resumed.next());
  });
}

TEST(DocumentStream, RefusesAPositionOfAnotherCorpus) {
  DocumentStream stream = stream_of(4, {.num_epochs = 2});
  EXPECT_THROW(stream.seek({.epoch = 0, .index = 5}), UserError);
  EXPECT_THROW(stream.seek({.epoch = 2, .index = 0}), UserError);
  EXPECT_THROW(stream.seek({.epoch = -1, .index = 0}), UserError);
  EXPECT_THROW(stream.seek({.epoch = 0, .index = -1}), UserError);
  stream.seek({.epoch = 1, .index = 4});
  EXPECT_FALSE(stream.next());
}

TEST(DocumentStream, RefusesAnEmptyCorpus) { EXPECT_THROW(stream_of(0, {}), UserError); }

}  // namespace
}  // namespace ballast
