#include "ballast/runtime/launch/rank_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/communicator.h"
#include "tests/runtime/launch/subprocess.h"

namespace ballast {
namespace {

RankIdentity identity_of(int rank, int port) {
  RankIdentity identity;
  identity.rank = rank;
  identity.world_size = 2;
  identity.master_port = port;
  return identity;
}

int free_port() {
  const int fd = listen_on("127.0.0.1", 0);
  const int port = port_of(fd);
  close(fd);
  return port;
}

TEST(RankStore, IsServedByRankZeroWhichLeavesLast) {
  const int port = free_port();
  bool other_left = false;
  std::thread other([&] {
    RankStore store(identity_of(1, port), 30);
    store.get()->set("key", std::vector<std::uint8_t>{42});
    other_left = true;
    store.leave();
  });
  RankStore store(identity_of(0, port), 30);
  EXPECT_EQ(store.get()->get("key"), std::vector<std::uint8_t>{42});
  store.leave();
  EXPECT_TRUE(other_left);
  other.join();
}

TEST(RankStore, SaysThatAPortIsInUseInOneLine) {
  const int fd = listen_on("127.0.0.1", 0);
  const int port = port_of(fd);
  try {
    RankStore store(identity_of(0, port), 5);
    FAIL() << "a port was taken twice";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("MASTER_PORT=" + std::to_string(port) + ": port in use on 127.0.0.1"), std::string::npos)
        << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  close(fd);
}

TEST(RankStore, SaysThatNobodyServesItWithinTheTimeOut) {
  try {
    RankStore store(identity_of(1, free_port()), 1);
    FAIL() << "a store without a server";
  } catch (const CommunicationError& error) {
    EXPECT_NE(std::string(error.what()).find("no answer within 1 s"), std::string::npos) << error.what();
  }
}

TEST(RankStore, RefusesAMasterThatIsNotThisHostOrDoesNotExist) {
  EXPECT_THROW(listen_on("192.0.2.1", 0), UserError);
  EXPECT_THROW(address_towards("no-such-host.invalid"), UserError);
}

TEST(RankStore, LooksForTheInterfaceTowardsTheMaster) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(address_towards("localhost").substr(0, 4), address_towards("localhost").find(':') == 0 ? "::1" : "127.");
}

TEST(RankProcesses, MeetWithoutALauncherOfOurs) {
  const std::string port = std::to_string(free_port());
  const auto start = [&](const std::string& rank) {
    return testing_support::Subprocess({BALLAST_RANKS_PROGRAM, "0", "60", "run"},
                                       {"RANK=" + rank, "WORLD_SIZE=2", "MASTER_PORT=" + port});
  };
  auto first = start("0");
  auto second = start("1");
  EXPECT_EQ(first.wait(60), 0) << first.errors();
  EXPECT_EQ(second.wait(60), 0) << second.errors();
  EXPECT_NE(first.output().find("step 5\ndone: "), std::string::npos) << first.output();
}

std::ptrdiff_t num_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(RankProcesses, GiveTheirErrorThemselvesWithoutALauncherOfOurs) {
  const std::string port = std::to_string(free_port());
  testing_support::Subprocess alone({BALLAST_RANKS_PROGRAM, "0", "1", "run"},
                                    {"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=" + port});
  EXPECT_EQ(alone.wait(60), 1);
  EXPECT_NE(alone.errors().find("ballast: rank 0: "), std::string::npos) << alone.errors();
  EXPECT_NE(alone.errors().find("no answer from rank 1 within 1 s"), std::string::npos) << alone.errors();
  EXPECT_EQ(num_lines(alone.errors()), 1) << alone.errors();
  testing_support::Subprocess unserved({BALLAST_RANKS_PROGRAM, "0", "1", "run"},
                                       {"RANK=1", "WORLD_SIZE=2", "MASTER_PORT=" + port});
  EXPECT_EQ(unserved.wait(60), 1);
  EXPECT_NE(unserved.errors().find("ballast: rank 1: store at 127.0.0.1:" + port), std::string::npos)
      << unserved.errors();
  EXPECT_EQ(num_lines(unserved.errors()), 1) << unserved.errors();
  testing_support::Subprocess wrong({BALLAST_RANKS_PROGRAM, "0", "1", "run"}, {"RANK=2", "WORLD_SIZE=2"});
  EXPECT_EQ(wrong.wait(60), 2);
  EXPECT_NE(wrong.errors().find("RANK=2 but WORLD_SIZE=2"), std::string::npos) << wrong.errors();
}

TEST(RankProcesses, SayOnceWhatAllHaveWithoutALauncherOfOurs) {
  for (const auto& [mode, said] : {std::pair<std::string, std::string>{
                                       "user-everywhere", "ballast: run.toml: corpus = \"nowhere\": no such folder\n"},
                                   {"refuse", "ballast: rank 1: run.toml: corpus = \"nowhere\": no such folder\n"}}) {
    const std::string port = std::to_string(free_port());
    const auto start = [&, mode = mode](const std::string& rank) {
      return testing_support::Subprocess({BALLAST_RANKS_PROGRAM, "0", "60", mode, "1"},
                                         {"RANK=" + rank, "WORLD_SIZE=3", "MASTER_PORT=" + port});
    };
    auto first = start("0");
    auto second = start("1");
    auto third = start("2");
    std::string errors;
    for (testing_support::Subprocess* rank : {&first, &second, &third}) {
      EXPECT_EQ(rank->wait(60), 2) << rank->errors();
      errors += rank->errors();
    }
    EXPECT_EQ(errors, said);
  }
}

TEST(RankProcesses, TellALostStoreFromARankThatDoesNotAnswer) {
  const std::string port = std::to_string(free_port());
  const auto start = [&](const std::string& rank, const std::string& mode) {
    return testing_support::Subprocess({BALLAST_RANKS_PROGRAM, "0", "60", mode, "0"},
                                       {"RANK=" + rank, "WORLD_SIZE=3", "MASTER_PORT=" + port});
  };
  auto server = start("0", "run");
  auto other = start("1", "run");  // rank 2 never comes
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(server.pid(), SIGKILL);
  EXPECT_EQ(other.wait(30), 1);
  EXPECT_NE(other.errors().find("start: lost the store"), std::string::npos) << other.errors();
  EXPECT_NE(other.errors().find("while waiting for place/2"), std::string::npos) << other.errors();
}

}  // namespace
}  // namespace ballast
