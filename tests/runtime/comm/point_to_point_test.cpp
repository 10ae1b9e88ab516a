#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/gloo.h"
#include "ballast/runtime/comm/mesh.h"
#include "ballast/runtime/comm/thread_ranks.h"
#include "tests/runtime/comm/communication_error.h"

namespace ballast {
namespace {

using testing::communication_error;

TEST(PointToPoint, KeepsTheOrderOfOneTagAndLetsTagsOvertake) {
  run_thread_mesh({.dp = 1, .pp = 2, .cp = 1}, [](Mesh& mesh) {
    const int peer = 1 - mesh.rank;
    if (mesh.rank == 0) {
      std::vector<std::unique_ptr<Transfer>> sends;
      std::vector<at::Tensor> tensors;
      for (int i = 0; i < 4; ++i) {
        tensors.push_back(at::full({1000 + i}, i, at::kFloat));
        sends.push_back(mesh.pp->send(tensors.back(), peer, static_cast<std::uint32_t>(i % 2)));
      }
      for (auto& send : sends) send->wait();
    } else {
      // Tag 1 is received first although it was sent second.
      for (const int i : {1, 3, 0, 2}) {
        at::Tensor tensor = at::empty({1000 + i}, at::kFloat);
        mesh.pp->receive(tensor, peer, static_cast<std::uint32_t>(i % 2))->wait();
        EXPECT_TRUE(at::equal(tensor, at::full({1000 + i}, i, at::kFloat))) << i;
      }
    }
  });
}

TEST(PointToPoint, CarriesEveryTypeAndShape) {
  run_thread_mesh({.dp = 2, .pp = 1, .cp = 1}, [](Mesh& mesh) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kByte}) {
      for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {7, 3}, {64, 1024}}) {
        const at::Tensor sent = at::ones(shape, type) * 5;
        at::Tensor received = at::zeros(shape, type);
        auto receive = mesh.world->receive(received, 1 - mesh.rank, 9);
        auto send = mesh.world->send(sent, 1 - mesh.rank, 9);
        receive->wait();
        send->wait();
        EXPECT_TRUE(at::equal(received, sent));
      }
    }
  });
}

TEST(PointToPoint, DoesNotSendEmptyTensors) {
  run_thread_mesh({.dp = 2, .pp = 1, .cp = 1}, [](Mesh& mesh) {
    if (mesh.rank == 0) {
      mesh.world->send(at::empty({0, 4}), 1, 3)->wait();  // nobody receives it
      mesh.world->send(at::ones({1}), 1, 3)->wait();
    } else {
      at::Tensor tensor = at::zeros({1});
      mesh.world->receive(tensor, 0, 3)->wait();
      EXPECT_EQ(tensor.item<float>(), 1);
    }
  });
}

TEST(PointToPoint, ServesAnyPairOfTheWorld) {
  run_thread_mesh({.dp = 2, .pp = 2, .cp = 1}, [](Mesh& mesh) {
    const int size = mesh.world->size();
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<at::Tensor> received;
    const at::Tensor mine = at::full({5}, mesh.rank);
    for (int peer = 0; peer < size; ++peer) {
      received.push_back(at::full({5}, -1));
      if (peer == mesh.rank) continue;
      transfers.push_back(mesh.world->receive(received.back(), peer, 1));
      transfers.push_back(mesh.world->send(mine, peer, 1));
    }
    for (auto& transfer : transfers) transfer->wait();
    for (int peer = 0; peer < size; ++peer) {
      if (peer == mesh.rank) continue;
      EXPECT_TRUE(at::equal(received[static_cast<std::size_t>(peer)], at::full({5}, peer)));
    }
  });
}

TEST(LostPeers, AreNamedWhenTheyDoNotAnswerInTime) {
  run_thread_mesh(
      {.dp = 3, .pp = 1, .cp = 1},
      [](Mesh& mesh) {
        if (mesh.rank == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // stays connected, joins nothing
          return;
        }
        at::Tensor tensor = at::ones({4});
        const std::string message = communication_error([&] { mesh.dp_cp->all_reduce(tensor); });
        EXPECT_NE(message.find("all_reduce over dp_cp, ranks 0, 1, 2"), std::string::npos) << message;
        EXPECT_NE(message.find("no answer from rank 2 within 1."), std::string::npos) << message;
      },
      /*group_timeout=*/1.0);
}

TEST(LostPeers, AreNamedWhenTheirConnectionEnds) {
  run_thread_mesh(
      {.dp = 2, .pp = 1, .cp = 1},
      [](Mesh& mesh) {
        mesh.world->barrier();
        if (mesh.rank == 1) return;  // leaves, and its connections end
        at::Tensor tensor = at::ones({4});
        const std::string message = communication_error([&] { mesh.world->receive(tensor, 1, 5)->wait(); });
        EXPECT_NE(message.find("receive from rank 1 over world: lost rank 1 after"), std::string::npos) << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      },
      /*group_timeout=*/30.0);
}

TEST(LostPeers, AreReportedWhereRanksDisagreeOnACollective) {
  run_thread_mesh(
      {.dp = 2, .pp = 1, .cp = 1},
      [](Mesh& mesh) {
        at::Tensor tensor = at::ones({4 + mesh.rank});
        const std::string message = communication_error([&] { mesh.world->all_reduce(tensor); });
        EXPECT_NE(message.find("all_reduce over world"), std::string::npos) << message;
      },
      /*group_timeout=*/1.0);
}

TEST(LostPeers, AreReportedAtTheStart) {
  std::string message;
  run_thread_ranks(2, [&](int rank, c10::intrusive_ptr<c10d::Store> store) {
    if (rank == 1) return;
    message = communication_error([&] {
      GlooNetwork network(store, {.address = "127.0.0.1", .timeout = 1, .observer = nullptr});
      network.join("cp", {0, 1}, 0);
    });
  });
  EXPECT_NE(message.find("group cp, ranks 0, 1: not all joined within 1 s"), std::string::npos) << message;
}

TEST(GlooNetwork, SaysWhichAddressItCannotBind) {
  run_thread_ranks(1, [&](int, c10::intrusive_ptr<c10d::Store> store) {
    try {
      GlooNetwork network(store, {.address = "192.0.2.1", .timeout = 1, .observer = nullptr});
      FAIL() << "192.0.2.1 is nobody's address";
    } catch (const RunError& error) {
      EXPECT_NE(std::string(error.what()).find("192.0.2.1"), std::string::npos) << error.what();
    }
  });
}

class CountingObserver : public WaitObserver {
 public:
  void wait_begins(std::string_view what) override {
    last = what;
    ++begun;
  }
  void wait_ends() override { ++ended; }
  std::string last;
  int begun = 0;
  int ended = 0;
};

TEST(WaitObservers, AreToldOfEveryWaitThatBlocksAndOfNoOther) {
  run_thread_ranks(2, [](int rank, c10::intrusive_ptr<c10d::Store> store) {
    CountingObserver observer;
    GlooNetwork network(store, {.address = "127.0.0.1", .timeout = 30, .observer = &observer});
    auto group = network.join("cp", {4, 6}, rank);
    auto alone = network.join("tied", {rank}, 0);
    at::Tensor tensor = at::ones({4});
    alone->all_reduce(tensor);
    alone->barrier();
    auto nothing = group->receive(at::empty({0}), 1 - rank, 1);
    nothing->wait();
    EXPECT_EQ(observer.begun, 0);
    group->all_reduce(tensor);
    EXPECT_EQ(observer.begun, 1);
    EXPECT_EQ(observer.ended, 1);
    EXPECT_EQ(observer.last, "all_reduce over cp, ranks 4, 6");
    auto receive = group->receive(tensor, 1 - rank, 1);
    auto send = group->send(at::ones({4}), 1 - rank, 1);
    receive->wait();
    send->wait();
    EXPECT_EQ(observer.begun, 3);
    EXPECT_EQ(observer.ended, 3);
  });
}

}  // namespace
}  // namespace ballast
