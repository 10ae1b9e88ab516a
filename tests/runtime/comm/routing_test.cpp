// Messages over proxies: what arrives, in which order, over whom, and what ends when a rank is lost.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/random.h"
#include "ballast/runtime/comm/gloo.h"
#include "ballast/runtime/comm/mesh.h"
#include "ballast/runtime/comm/router.h"
#include "ballast/runtime/comm/thread_ranks.h"
#include "tests/runtime/comm/communication_error.h"

namespace ballast {
namespace {

using testing::communication_error;

// Every message that can be is spread over all ranks of a node.
Routing over_all(int ranks_per_node) {
  return {.ranks_per_node = ranks_per_node,
          .cards_per_node = ranks_per_node,
          .chunk_bytes = 1000,
          .rules = {{.at_least = 0, .proxies = ranks_per_node}}};
}

void run_routed(const ParallelDims& dims, const Routing& routing, const std::function<void(Mesh&)>& body,
                Seconds timeout = 60) {
  std::signal(SIGPIPE, SIG_IGN);  // as every rank does: a closed socket is an error and no signal
  run_thread_ranks(dims.world_size(), [&](int rank, c10::intrusive_ptr<c10d::Store> store) {
    GlooOptions options;
    options.timeout = timeout;
    options.routing = routing;
    Mesh mesh = make_mesh(dims, rank, store, options);
    mesh.world->barrier();  // whoever leaves before all are connected would end the others' connecting
    body(mesh);
  });
}

struct Planned {
  std::uint32_t tag = 0;
  std::int64_t bytes = 0;
};

// What one rank sends another, in order: both know it.
std::vector<Planned> messages_between(int from, int to, int count) {
  Random random(mix_seed(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to)));
  std::vector<Planned> planned;
  for (int i = 0; i < count; ++i) {
    const std::int64_t sizes[] = {1, 3, 999, 4000, 4001, 50'000, static_cast<std::int64_t>(random.below(300'000)) + 1};
    planned.push_back({static_cast<std::uint32_t>(random.below(3)), sizes[random.below(7)]});
  }
  return planned;
}

at::Tensor contents(int from, int to, int i, std::int64_t bytes) {
  return (at::arange(bytes, at::kLong) * 31 + from * 101 + to * 7 + i * 13).to(at::kByte);
}

struct Nodes {
  int nodes;
  int ranks_per_node;
};

class RoutedMessages : public ::testing::TestWithParam<Nodes> {};

// Every rank exchanges with every other at the same time, and receives tag by tag in another order than was sent.
TEST_P(RoutedMessages, ArriveIntactWhateverTheirSizesAndTagsAndWhoeverElseSends) {
  constexpr int kCount = 12;
  const int ranks = GetParam().nodes * GetParam().ranks_per_node;
  run_routed({.dp = ranks, .pp = 1, .cp = 1}, over_all(GetParam().ranks_per_node), [&](Mesh& mesh) {
    ASSERT_NE(mesh.network->router(), nullptr);
    struct Received {
      at::Tensor tensor;
      at::Tensor expected;
    };
    Random random(static_cast<std::uint64_t>(mesh.rank));
    std::vector<at::Tensor> sent;
    std::vector<Received> received;
    std::vector<std::unique_ptr<Transfer>> transfers;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == mesh.rank) continue;
      const std::vector<Planned> planned = messages_between(mesh.rank, peer, kCount);
      for (int i = 0; i < kCount; ++i) {
        const auto& [tag, bytes] = planned[static_cast<std::size_t>(i)];
        sent.push_back(contents(mesh.rank, peer, i, bytes));
        transfers.push_back(mesh.world->send(sent.back(), peer, tag));
      }
    }
    if (mesh.rank % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // headers may be early
    std::vector<int> peers;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != mesh.rank) peers.push_back(peer);
    }
    shuffle(peers, random);
    for (const int peer : peers) {
      const std::vector<Planned> planned = messages_between(peer, mesh.rank, kCount);
      std::vector<std::uint32_t> tags = {0, 1, 2};
      shuffle(tags, random);
      for (const std::uint32_t tag : tags) {
        for (int i = 0; i < kCount; ++i) {
          const Planned& message = planned[static_cast<std::size_t>(i)];
          if (message.tag != tag) continue;
          received.push_back({at::zeros({message.bytes}, at::kByte), contents(peer, mesh.rank, i, message.bytes)});
          transfers.push_back(mesh.world->receive(received.back().tensor, peer, tag));
        }
      }
    }
    shuffle(transfers, random);
    for (auto& transfer : transfers) transfer->wait();
    for (const Received& message : received) EXPECT_TRUE(at::equal(message.tensor, message.expected));
  });
}

INSTANTIATE_TEST_SUITE_P(Nodes, RoutedMessages, ::testing::Values(Nodes{2, 4}, Nodes{2, 2}, Nodes{3, 2}),
                         [](const auto& instance) {
                           return std::to_string(instance.param.nodes) + "x" +
                                  std::to_string(instance.param.ranks_per_node);
                         });

TEST(Routing, KeepsTheOrderOfOneTagAlsoWhereSizesGoDifferentWays) {
  Routing routing = over_all(4);
  routing.rules = {{1000, 2}, {4000, 4}};
  run_routed({.dp = 8, .pp = 1, .cp = 1}, routing, [](Mesh& mesh) {
    if (mesh.rank != 1 && mesh.rank != 6) return;
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Transfer>> transfers;
    const std::vector<std::int64_t> sizes = {200'000, 200'000, 900, 3000, 3000, 8000, 200'000, 10, 8000, 3000};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const at::Tensor message = contents(1, 6, static_cast<int>(i), sizes[i]);
      tensors.push_back(mesh.rank == 1 ? message : at::zeros_like(message));
      transfers.push_back(mesh.rank == 1 ? mesh.world->send(tensors.back(), 6, 5)
                                         : mesh.world->receive(tensors.back(), 1, 5));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      transfers[i]->wait();
      EXPECT_TRUE(at::equal(tensors[i], contents(1, 6, static_cast<int>(i), sizes[i]))) << i;
    }
  });
}

// What every rank has after all collectives, of counts that one phase and two phases of an all-reduce serve.
std::vector<at::Tensor> after_collectives(const ParallelDims& dims, const Routing& routing) {
  std::vector<std::vector<at::Tensor>> of_ranks(static_cast<std::size_t>(dims.world_size()));
  run_routed(dims, routing, [&](Mesh& mesh) {
    std::vector<at::Tensor>& results = of_ranks[static_cast<std::size_t>(mesh.rank)];
    for (Communicator* group : {mesh.world.get(), mesh.cp.get(), mesh.dp_cp.get(), mesh.pp.get()}) {
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        for (const std::int64_t count : {3, 2000, 30'001}) {
          const at::Tensor mine = at::sin(at::arange(count, at::kFloat) * (mesh.rank + 0.37F)).to(type);
          at::Tensor sum = mine.clone();
          group->all_reduce(sum);
          at::Tensor largest = mine.clone();
          group->all_reduce(largest, ReduceOp::max);
          at::Tensor copied = mine.clone();
          group->broadcast(copied, group->size() - 1);
          std::vector<std::int64_t> rows(static_cast<std::size_t>(group->size()), count / group->size());
          rows.back() += count - count / group->size() * group->size();
          const at::Tensor reduced = group->reduce_scatter_rows(mine, rows);
          for (const at::Tensor& result : {sum, largest, copied, reduced, group->all_gather_rows(reduced, rows)}) {
            results.push_back(result);
          }
        }
      }
      group->barrier();
    }
  });
  std::vector<at::Tensor> all;
  for (const auto& results : of_ranks) all.insert(all.end(), results.begin(), results.end());
  return all;
}

TEST(Routing, LeavesEveryCollectiveTheSameBits) {
  for (const auto& [dims, ranks_per_node] :
       {std::pair<ParallelDims, int>{{.dp = 2, .pp = 2, .cp = 2}, 4}, {{.dp = 1, .pp = 1, .cp = 6}, 2}}) {
    const std::vector<at::Tensor> direct = after_collectives(dims, {});
    const std::vector<at::Tensor> routed = after_collectives(dims, over_all(ranks_per_node));
    ASSERT_EQ(direct.size(), routed.size());
    for (std::size_t i = 0; i < direct.size(); ++i) EXPECT_TRUE(at::equal(direct[i], routed[i])) << i;
  }
}

TEST(Routing, UsesRanksOutsideTheGroupWhichServeThoughTheyWaitElsewhere) {
  constexpr Bytes kBytes = 400'000;
  std::vector<Bytes> forwarded(8, -1);
  run_thread_ranks(8, [&](int rank, c10::intrusive_ptr<c10d::Store> store) {
    GlooOptions options;
    options.routing = over_all(4);
    GlooNetwork network(store, options);
    network.start_routing(rank, 8);
    auto world = network.join("world", {0, 1, 2, 3, 4, 5, 6, 7}, rank);
    if (rank == 1 || rank == 6) {
      auto cp = network.join("cp", {1, 6}, rank == 1 ? 0 : 1);
      const int peer = 1 - cp->rank();
      const at::Tensor sent = contents(cp->rank(), peer, 0, kBytes);
      at::Tensor received = at::zeros_like(sent);
      auto receive = cp->receive(received, peer, 2);
      auto send = cp->send(sent, peer, 2);
      receive->wait();
      send->wait();
      EXPECT_TRUE(at::equal(received, contents(peer, cp->rank(), 0, kBytes)));
    }
    world->barrier();
    forwarded[static_cast<std::size_t>(rank)] = network.router()->forwarded_bytes();
  });
  // A quarter of either message over each of three proxies a node; the direct part over none.
  const Bytes quarter = kBytes / 4;
  EXPECT_EQ(forwarded, (std::vector<Bytes>{2 * quarter, 0, 2 * quarter, 2 * quarter,  //
                                           2 * quarter, 2 * quarter, 0, 2 * quarter}));
}

TEST(Routing, LetsARankLeaveOnlyWhenNobodyNeedsItAsAProxy) {
  run_routed({.dp = 4, .pp = 1, .cp = 1}, over_all(2), [](Mesh& mesh) {
    if (mesh.rank == 1 || mesh.rank == 3) return;  // the proxies
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    at::Tensor tensor = contents(0, 2, 0, 100'000);
    if (mesh.rank == 0) {
      mesh.world->send(tensor, 2, 0)->wait();
    } else {
      at::Tensor received = at::zeros_like(tensor);
      mesh.world->receive(received, 0, 0)->wait();
      EXPECT_TRUE(at::equal(received, tensor));
    }
  });
}

TEST(Routing, MakesNothingWhereNothingIsRouted) {
  run_routed({.dp = 2, .pp = 1, .cp = 1}, {}, [](Mesh& mesh) { EXPECT_EQ(mesh.network->router(), nullptr); });
  run_routed({.dp = 2, .pp = 1, .cp = 1}, over_all(2), [](Mesh& mesh) { EXPECT_EQ(mesh.network->router(), nullptr); });
}

TEST(Routing, IsRefusedWhereItCannotBe) {
  Routing routing = over_all(4);
  routing.rules = {{0, 3}};
  try {
    run_routed({.dp = 8, .pp = 1, .cp = 1}, routing, [](Mesh&) { FAIL() << "three proxies of four ranks"; });
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("proxies = 3 must divide ranks_per_node"), std::string::npos)
        << error.what();
  }
}

TEST(RoutedLostPeers, EndEveryoneWhenARankThrowsInMidTransfer) {
  std::vector<std::string> messages(8);
  try {
    run_routed(
        {.dp = 8, .pp = 1, .cp = 1}, over_all(4),
        [&](Mesh& mesh) {
          at::Tensor tensor = at::ones({100'000});
          const auto transfers_without_end = [&] {
            while (true) mesh.world->all_reduce(tensor);
          };
          if (mesh.rank == 5) {
            mesh.world->all_reduce(tensor);
            const auto under_way = mesh.world->send(tensor, 1, 0);  // nobody receives it
            throw std::logic_error("rank 5 broke");
          }
          messages[static_cast<std::size_t>(mesh.rank)] = communication_error(transfers_without_end);
        },
        /*timeout=*/10);
    FAIL() << "an error of a rank was lost";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "rank 5 broke");
  }
  for (int rank = 0; rank < 8; ++rank) {
    if (rank == 5) continue;
    const std::string& message = messages[static_cast<std::size_t>(rank)];
    EXPECT_NE(message.find("rank"), std::string::npos) << message;
    EXPECT_NE(message.find("all_reduce over world"), std::string::npos) << message;
  }
}

TEST(RoutedLostPeers, AreNamedWhenTheyDoNotAnswerInTime) {
  run_routed(
      {.dp = 4, .pp = 1, .cp = 1}, over_all(2),
      [](Mesh& mesh) {
        if (mesh.rank == 3) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // stays connected, sends nothing
          return;
        }
        if (mesh.rank != 0) return;
        at::Tensor tensor = at::ones({100'000});
        const std::string message = communication_error([&] { mesh.world->receive(tensor, 3, 1)->wait(); });
        EXPECT_NE(message.find("receive from rank 3 over world: no answer from rank 3 within 1."), std::string::npos)
            << message;
      },
      /*timeout=*/1.0);
}

TEST(RoutedLostPeers, NameTheProxyThatIsGone) {
  std::string sender;
  std::string receiver;
  try {
    run_routed(
        {.dp = 4, .pp = 1, .cp = 1}, over_all(2),
        [&](Mesh& mesh) {
          if (mesh.rank == 1) throw std::logic_error("rank 1 broke");
          at::Tensor tensor = at::ones({100'000});
          if (mesh.rank == 0) {
            sender = communication_error([&] {
              while (true) mesh.world->send(tensor, 2, 0)->wait();
            });
          }
          if (mesh.rank == 2) {
            receiver = communication_error([&] {
              while (true) mesh.world->receive(tensor, 0, 0)->wait();
            });
          }
        },
        /*timeout=*/5);
    FAIL() << "an error of a rank was lost";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "rank 1 broke");
  }
  // Whichever of the two fails first does so because of rank 1; the other perhaps because of the first.
  EXPECT_NE(sender.find("send to rank 2 over world: lost rank"), std::string::npos) << sender;
  EXPECT_NE(sender.find("rank 1"), std::string::npos) << sender;
  EXPECT_NE(receiver.find("receive from rank 0 over world: lost rank"), std::string::npos) << receiver;
  EXPECT_NE(receiver.find("rank 1"), std::string::npos) << receiver;
}

}  // namespace
}  // namespace ballast
