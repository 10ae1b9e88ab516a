#include "ballast/ir/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two nodes of four ranks with a card each: over two cards from 100 bytes on, over all from 1000.
Routing four_cards() {
  return {.ranks_per_node = 4, .cards_per_node = 4, .chunk_bytes = 64, .rules = {{100, 2}, {1000, 4}}};
}

TEST(Routing, SendsSmallMessagesAndThoseInsideANodeDirectly) {
  const Routing routing = four_cards();
  EXPECT_THAT(routing.violations(8), IsEmpty());
  EXPECT_EQ(routing.proxies(0, 4, 99), 1);
  EXPECT_EQ(routing.proxies(0, 4, 100), 2);
  EXPECT_EQ(routing.proxies(0, 4, 999), 2);
  EXPECT_EQ(routing.proxies(7, 3, 1000), 4);
  EXPECT_EQ(routing.proxies(0, 3, 1000), 1);
  EXPECT_EQ(routing.part(0, 4, 99, 0), (RoutedPart{.sender_proxy = 0, .receiver_proxy = 4, .begin = 0, .end = 99}));
}

TEST(Routing, TakesProxiesAsFarApartAsTheNodeAllows) {
  const Routing routing = four_cards();
  EXPECT_EQ(routing.part(1, 6, 101, 0), (RoutedPart{.sender_proxy = 1, .receiver_proxy = 6, .begin = 0, .end = 51}));
  EXPECT_EQ(routing.part(1, 6, 101, 1), (RoutedPart{.sender_proxy = 3, .receiver_proxy = 4, .begin = 51, .end = 101}));
  EXPECT_EQ(routing.part(6, 1, 1000, 3),
            (RoutedPart{.sender_proxy = 5, .receiver_proxy = 0, .begin = 750, .end = 1000}));
}

TEST(Routing, HasNoPartWithoutBytes) {
  const Routing routing = {.ranks_per_node = 4, .cards_per_node = 4, .chunk_bytes = 1, .rules = {{0, 4}}};
  EXPECT_EQ(routing.proxies(0, 4, 3), 1);
  EXPECT_EQ(routing.proxies(0, 4, 4), 4);
  EXPECT_EQ(routing.part(0, 4, std::numeric_limits<Bytes>::max(), 3).end, std::numeric_limits<Bytes>::max());
}

TEST(Routing, IsOffOnOneNodeAndWithoutARuleThatRoutes) {
  EXPECT_FALSE(Routing{}.active(8));
  EXPECT_EQ(Routing{}.proxies(0, 4, 1 << 20), 1);
  EXPECT_THAT(Routing{}.violations(8), IsEmpty());
  EXPECT_FALSE(four_cards().active(4));
  EXPECT_TRUE(four_cards().active(8));
  Routing direct = four_cards();
  direct.rules = {{0, 1}};
  EXPECT_FALSE(direct.active(8));
}

TEST(Routing, NamesWhatCannotBe) {
  const auto violations_with = [](const auto& change) {
    Routing routing = four_cards();
    change(routing);
    return routing.violations(8);
  };
  EXPECT_THAT(violations_with([](Routing& r) { r.ranks_per_node = -1; }), ElementsAre(HasSubstr("0 (one node)")));
  EXPECT_THAT(violations_with([](Routing& r) { r.cards_per_node = 0; }),
              ElementsAre(HasSubstr("cards_per_node = 0 must be 1 to ranks_per_node, 4"), HasSubstr("at most"),
                          HasSubstr("at most")));
  EXPECT_THAT(violations_with([](Routing& r) { r.cards_per_node = 5; }), ElementsAre(HasSubstr("cards_per_node = 5")));
  EXPECT_THAT(violations_with([](Routing& r) { r.chunk_bytes = 0; }), ElementsAre(HasSubstr("chunk_bytes")));
  EXPECT_THAT(violations_with([](Routing& r) {
                r.rules = {{100, 2}, {100, 4}};
              }),
              ElementsAre(HasSubstr("over the rule before")));
  EXPECT_THAT(violations_with([](Routing& r) { r.rules = {{-1, 2}}; }), ElementsAre(HasSubstr("0 or more")));
  EXPECT_THAT(violations_with([](Routing& r) {
                r.rules = {{0, 3}};
              }),
              ElementsAre(HasSubstr("proxies = 3 must divide ranks_per_node, 4")));
  EXPECT_THAT(violations_with([](Routing& r) { r.rules = {{0, 0}}; }), ElementsAre(HasSubstr("proxies = 0")));
  EXPECT_THAT(violations_with([](Routing& r) { r.cards_per_node = 2; }),
              ElementsAre(HasSubstr("proxies = 4 must be at most cards_per_node, 2")));
  EXPECT_THAT(four_cards().violations(10), ElementsAre(HasSubstr("does not divide the 10 ranks")));
}

RC_GTEST_PROP(Routing, PartsCoverAMessageAndUseACardOnceOnEitherSide, ()) {
  const int ranks = *rc::gen::inRange(1, 13);
  Routing routing = {.ranks_per_node = ranks, .cards_per_node = *rc::gen::inRange(1, ranks + 1), .chunk_bytes = 1};
  for (int proxies = 1; proxies <= routing.cards_per_node; ++proxies) {
    if (ranks % proxies != 0) continue;
    routing.rules = {{0, proxies}};
    RC_ASSERT(routing.violations(3 * ranks).empty());
    const int from = *rc::gen::inRange(0, ranks);
    const int to = *rc::gen::inRange(ranks, 3 * ranks);
    const Bytes bytes = *rc::gen::inRange<Bytes>(proxies, 1000);
    std::set<int> sending_cards;
    std::set<int> receiving_cards;
    Bytes end = 0;
    for (int k = 0; k < routing.proxies(from, to, bytes); ++k) {
      const RoutedPart part = routing.part(from, to, bytes, k);
      const auto card = [&](int rank) { return rank % ranks * routing.cards_per_node / ranks; };
      RC_ASSERT(routing.node_of(part.sender_proxy) == routing.node_of(from));
      RC_ASSERT(routing.node_of(part.receiver_proxy) == routing.node_of(to));
      RC_ASSERT(sending_cards.insert(card(part.sender_proxy)).second);
      RC_ASSERT(receiving_cards.insert(card(part.receiver_proxy)).second);
      RC_ASSERT(part.begin == end);
      RC_ASSERT(part.end > part.begin);
      end = part.end;
    }
    RC_ASSERT(end == bytes);
    RC_ASSERT(static_cast<int>(sending_cards.size()) == proxies);
  }
}

}  // namespace
}  // namespace ballast
