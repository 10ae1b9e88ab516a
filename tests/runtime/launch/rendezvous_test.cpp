#include "ballast/runtime/launch/rendezvous.h"

#include <gtest/gtest.h>

#include <string>

#include "ballast/base/error.h"

namespace ballast {
namespace {

std::string error_of(const Environment& environment) {
  try {
    rank_identity(environment);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(Rendezvous, FindsNoRankWhereNoLauncherSaysSo) {
  EXPECT_EQ(rank_identity({}), std::nullopt);
  EXPECT_EQ(rank_identity({{"PATH", "/bin"}, {"MASTER_ADDR", "10.0.0.1"}}), std::nullopt);
  EXPECT_EQ(rank_identity({{"RANK", ""}}), std::nullopt) << "an empty variable is as good as none";
}

TEST(Rendezvous, ReadsTorchrun) {
  const auto identity = rank_identity({{"RANK", "5"},
                                       {"WORLD_SIZE", "8"},
                                       {"LOCAL_RANK", "1"},
                                       {"MASTER_ADDR", "node0"},
                                       {"MASTER_PORT", "12345"},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                       {"TORCHELASTIC_RESTART_COUNT", "2"}});
  const RankIdentity expected{.rank = 5,
                              .world_size = 8,
                              .local_rank = 1,
                              .master_address = "node0",
                              .master_port = 12345,
                              .launcher_serves_store = true,
                              .attempt = "2",
                              .launcher = "torchrun"};
  EXPECT_EQ(identity, expected);
}

TEST(Rendezvous, MeetsOnLoopbackUnlessToldOtherwise) {
  const auto identity = rank_identity({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->master_address, "127.0.0.1");
  EXPECT_EQ(identity->master_port, 29500);
  EXPECT_EQ(identity->local_rank, 1);
  EXPECT_FALSE(identity->launcher_serves_store);
}

TEST(Rendezvous, ReadsOpenMpi) {
  const Environment environment = {{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "4"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                   {"PMIX_NAMESPACE", "prterun-host-12@1"}};
  const auto identity = rank_identity(environment);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->rank, 1);
  EXPECT_EQ(identity->world_size, 4);
  EXPECT_EQ(identity->master_address, "127.0.0.1");
  EXPECT_EQ(identity->launcher, "Open MPI");
  EXPECT_GE(identity->master_port, 20000);
  Environment other_job = environment;
  other_job["PMIX_NAMESPACE"] = "prterun-host-13@1";
  EXPECT_NE(rank_identity(other_job)->master_port, identity->master_port);
}

TEST(Rendezvous, AsksForTheMasterWhereOpenMpiSpansHosts) {
  Environment environment = {
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_NE(error_of(environment).find("mpirun -x MASTER_ADDR="), std::string::npos);
  environment["MASTER_ADDR"] = "10.0.0.7";
  EXPECT_EQ(rank_identity(environment)->master_address, "10.0.0.7");
}

TEST(Rendezvous, ReadsSlurm) {
  const Environment environment = {{"SLURM_PROCID", "3"},
                                   {"SLURM_NTASKS", "4"},
                                   {"SLURM_LOCALID", "1"},
                                   {"SLURM_JOB_ID", "4711"},
                                   {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                   {"SLURM_JOB_NODELIST", "gpu[07-09,12]"},
                                   {"SLURM_LAUNCH_NODE_IPADDR", "10.1.1.1"}};
  const auto identity = rank_identity(environment);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->rank, 3);
  EXPECT_EQ(identity->world_size, 4);
  EXPECT_EQ(identity->local_rank, 1);
  EXPECT_EQ(identity->master_address, "gpu07");
  EXPECT_EQ(identity->launcher, "Slurm");

  Environment one_host = environment;
  one_host["SLURM_TASKS_PER_NODE"] = "4";
  EXPECT_EQ(rank_identity(one_host)->master_address, "127.0.0.1");
  Environment no_list = environment;
  no_list.erase("SLURM_JOB_NODELIST");
  EXPECT_EQ(rank_identity(no_list)->master_address, "10.1.1.1");
  Environment told = environment;
  told["MASTER_ADDR"] = "10.2.2.2";
  told["MASTER_PORT"] = "1234";
  EXPECT_EQ(rank_identity(told)->master_address, "10.2.2.2");
  EXPECT_EQ(rank_identity(told)->master_port, 1234);
  Environment step = environment;
  step["SLURM_STEP_NUM_TASKS"] = "16";
  EXPECT_EQ(rank_identity(step)->world_size, 16) << "a step may be another size than its job";
}

TEST(Rendezvous, PrefersWhatWasSetForThisProcessToTheJobAroundIt) {
  const auto identity = rank_identity({{"RANK", "0"},
                                       {"WORLD_SIZE", "2"},
                                       {"SLURM_PROCID", "0"},
                                       {"SLURM_NTASKS", "1"},
                                       {"BALLAST_LAUNCHER", "ballast"}});
  EXPECT_EQ(identity->world_size, 2);
  EXPECT_EQ(identity->launcher, "ballast");
}

TEST(Rendezvous, SaysWhichVariableIsMissingOrWrong) {
  EXPECT_EQ(error_of({{"RANK", "0"}}), "environment: RANK is set but WORLD_SIZE is not; torchrun sets both");
  EXPECT_EQ(error_of({{"WORLD_SIZE", "2"}}), "environment: WORLD_SIZE is set but RANK is not; torchrun sets both");
  EXPECT_NE(error_of({{"SLURM_PROCID", "0"}}).find("SLURM_STEP_NUM_TASKS is not"), std::string::npos);
  EXPECT_NE(error_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("RANK=2 but WORLD_SIZE=2"), std::string::npos);
  for (const char* bad : {"-1", "two", "1x", "1.5", "99999999999"}) {
    EXPECT_NE(error_of({{"RANK", bad}, {"WORLD_SIZE", "2"}}).find(std::string("RANK=") + bad), std::string::npos)
        << bad;
  }
  EXPECT_NE(error_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}).find("WORLD_SIZE=0"), std::string::npos);
  EXPECT_NE(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}).find("LOCAL_RANK=2"),
            std::string::npos);
  EXPECT_NE(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}).find("MASTER_PORT=70000"),
            std::string::npos);
}

TEST(SlurmNodeLists, BeginWithTheirFirstHost) {
  EXPECT_EQ(first_slurm_host("node1"), "node1");
  EXPECT_EQ(first_slurm_host("node1,node2"), "node1");
  EXPECT_EQ(first_slurm_host("gpu[07-09,12],login1"), "gpu07");
  EXPECT_EQ(first_slurm_host("login1,gpu[07-09]"), "login1");
  EXPECT_EQ(first_slurm_host("gpu[3,5]"), "gpu3");
  EXPECT_EQ(first_slurm_host("rack1-[10-12]-ib,other"), "rack1-10-ib");
  EXPECT_THROW(first_slurm_host("gpu[07-09"), UserError);
  EXPECT_THROW(first_slurm_host(""), UserError);
}

}  // namespace
}  // namespace ballast
