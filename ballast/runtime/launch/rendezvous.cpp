#include "ballast/runtime/launch/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "ballast/base/digest.h"
#include "ballast/base/error.h"

namespace ballast {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's

const std::string* find(const Environment& environment, const std::string& name) {
  const auto at = environment.find(name);
  return at == environment.end() || at->second.empty() ? nullptr : &at->second;
}

int to_number(const std::string& name, const std::string& value, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
    throw UserError("environment: " + name + "=" + value + " is not a whole number from " + std::to_string(least) +
                    " to " + std::to_string(most));
  }
  return number;
}

constexpr int kMostRanks = 1 << 20;

// The names a launcher uses; the variable of the last may be absent.
struct Names {
  std::string rank, world_size, local_rank;
};

RankIdentity read_ranks(const Environment& environment, const Names& names, const std::string& launcher) {
  RankIdentity identity;
  identity.launcher = launcher;
  for (const auto& [name, other] : {std::pair{names.rank, names.world_size}, {names.world_size, names.rank}}) {
    if (find(environment, name) == nullptr) {
      throw UserError("environment: " + other + " is set but " + name + " is not; " + launcher + " sets both");
    }
  }
  identity.world_size = to_number(names.world_size, *find(environment, names.world_size), 1, kMostRanks);
  identity.rank = to_number(names.rank, *find(environment, names.rank), 0, kMostRanks);
  if (identity.rank >= identity.world_size) {
    throw UserError("environment: " + names.rank + "=" + std::to_string(identity.rank) + " but " + names.world_size +
                    "=" + std::to_string(identity.world_size) + ": ranks run from 0 to " + names.world_size + " - 1");
  }
  identity.local_rank = identity.rank;
  if (const std::string* local = find(environment, names.local_rank)) {
    identity.local_rank = to_number(names.local_rank, *local, 0, kMostRanks);
    if (identity.local_rank >= identity.world_size) {
      throw UserError("environment: " + names.local_rank + "=" + *local + " but " + names.world_size + "=" +
                      std::to_string(identity.world_size) + ": a host holds no more ranks than there are");
    }
  }
  return identity;
}

void read_master(const Environment& environment, RankIdentity& identity, int default_port) {
  if (const std::string* address = find(environment, "MASTER_ADDR")) identity.master_address = *address;
  identity.master_port = default_port;
  if (const std::string* port = find(environment, "MASTER_PORT")) {
    identity.master_port = to_number("MASTER_PORT", *port, 1, 65535);
  }
}

// A port all ranks of a job agree on and other jobs on the host most likely do not use.
int port_of_job(const std::string& job) { return 20000 + static_cast<int>(digest(job) % 20000); }

RankIdentity from_torchrun(const Environment& environment) {
  const std::string* by = find(environment, "BALLAST_LAUNCHER");
  RankIdentity identity =
      read_ranks(environment, {"RANK", "WORLD_SIZE", "LOCAL_RANK"}, by != nullptr ? *by : "torchrun");
  read_master(environment, identity, kDefaultPort);
  if (const std::string* agent = find(environment, "TORCHELASTIC_USE_AGENT_STORE")) {
    identity.launcher_serves_store = *agent == "True";
  }
  if (const std::string* attempt = find(environment, "TORCHELASTIC_RESTART_COUNT")) identity.attempt = *attempt;
  return identity;
}

RankIdentity from_open_mpi(const Environment& environment) {
  RankIdentity identity = read_ranks(
      environment, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}, "Open MPI");
  const std::string* job = find(environment, "PMIX_NAMESPACE");
  if (job == nullptr) job = find(environment, "OMPI_MCA_ess_base_jobid");
  read_master(environment, identity, job != nullptr ? port_of_job(*job) : kDefaultPort);
  const std::string* local_size = find(environment, "OMPI_COMM_WORLD_LOCAL_SIZE");
  const bool several_hosts = local_size != nullptr &&
                             to_number("OMPI_COMM_WORLD_LOCAL_SIZE", *local_size, 1, kMostRanks) < identity.world_size;
  if (several_hosts && find(environment, "MASTER_ADDR") == nullptr) {
    throw UserError(
        "environment: MASTER_ADDR is not set, and Open MPI started ranks on several hosts; pass the address of rank "
        "0's host: mpirun -x MASTER_ADDR=10.0.0.1");
  }
  return identity;
}

// Tasks on node `index` of "2(x3),1". 0 where the list ends before it.
int slurm_tasks_on_node(const std::string& tasks_per_node, int index) {
  std::size_t at = 0;
  while (at < tasks_per_node.size()) {
    const std::size_t end = std::min(tasks_per_node.find(',', at), tasks_per_node.size());
    const std::string item = tasks_per_node.substr(at, end - at);
    const std::size_t times = item.find("(x");
    const int tasks = to_number("SLURM_TASKS_PER_NODE", item.substr(0, times), 0, kMostRanks);
    const int nodes =
        times == std::string::npos
            ? 1
            : to_number("SLURM_TASKS_PER_NODE", item.substr(times + 2, item.size() - times - 3), 1, kMostRanks);
    if (index < nodes) return tasks;
    index -= nodes;
    at = end + 1;
  }
  return 0;
}

RankIdentity from_slurm(const Environment& environment) {
  const auto first_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (find(environment, name) != nullptr) return std::string(name);
    }
    return std::string(*names.begin());
  };
  // A step may use fewer tasks and nodes than its job: srun's own variables come first.
  const std::string size_name = first_of({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  RankIdentity identity = read_ranks(environment, {"SLURM_PROCID", size_name, "SLURM_LOCALID"}, "Slurm");
  std::string job;
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    if (const std::string* id = find(environment, name)) job += *id + ".";
  }
  read_master(environment, identity, job.empty() ? kDefaultPort : port_of_job(job));
  if (find(environment, "MASTER_ADDR") != nullptr) return identity;

  const std::string tasks_name = first_of({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  const std::string* tasks = find(environment, tasks_name);
  if (tasks != nullptr && slurm_tasks_on_node(*tasks, 0) == identity.world_size) return identity;  // all on one host
  // Rank 0 serves the store, and it is on the step's first node; the node that called srun may be another.
  const std::string nodes_name = first_of({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (const std::string* nodes = find(environment, nodes_name)) {
    identity.master_address = first_slurm_host(*nodes);
  } else if (const std::string* launch_node = find(environment, "SLURM_LAUNCH_NODE_IPADDR")) {
    identity.master_address = *launch_node;
  }
  return identity;
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals != nullptr)
      environment.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  }
  return environment;
}

std::optional<RankIdentity> rank_identity(const Environment& environment) {
  const auto any = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (find(environment, name) != nullptr) return true;
    }
    return false;
  };
  if (any({"RANK", "WORLD_SIZE"})) return from_torchrun(environment);
  if (any({"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"})) return from_open_mpi(environment);
  if (any({"SLURM_PROCID"})) return from_slurm(environment);
  return std::nullopt;
}

std::string first_slurm_host(const std::string& node_list) {
  const std::size_t bracket = node_list.find('[');
  const std::size_t comma = node_list.find(',');
  std::string host;
  if (bracket == std::string::npos || comma < bracket) {
    host = node_list.substr(0, comma);
  } else {
    const std::size_t close = node_list.find(']', bracket);
    if (close == std::string::npos) throw UserError("environment: node list " + node_list + " has a [ without its ]");
    const std::string ranges = node_list.substr(bracket + 1, close - bracket - 1);
    const std::string first = ranges.substr(0, ranges.find_first_of(",-"));
    // What follows the brackets belongs to the name too: "node[1-2]-ib".
    const std::size_t end = std::min(node_list.find(',', close), node_list.size());
    host = node_list.substr(0, bracket) + first + node_list.substr(close + 1, end - close - 1);
  }
  if (host.empty()) throw UserError("environment: node list \"" + node_list + "\" names no host");
  return host;
}

}  // namespace ballast
