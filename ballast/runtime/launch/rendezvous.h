// Which rank this process is and where the ranks meet, as its launcher told it through the environment.
//
//   ballast --nproc, torchrun:  RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
//   Open MPI:                   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//   Slurm:                      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID SLURM_STEP_NODELIST
// The first of these that is present counts. MASTER_ADDR and MASTER_PORT, where set, always do; without them ranks meet
// on loopback, or on the first node of a Slurm step of several.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace ballast {

using Environment = std::map<std::string, std::string>;
Environment process_environment();

struct RankIdentity {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;                        // among the ranks of this host
  std::string master_address = "127.0.0.1";  // where the store is served
  int master_port = 0;
  bool launcher_serves_store = false;  // otherwise rank 0 does
  std::string attempt = "0";           // torchrun's restarts share a store: keys of each try are kept apart
  std::string launcher;                // "ballast", "torchrun", "Open MPI", "Slurm"; empty: started by hand
  bool operator==(const RankIdentity&) const = default;
};

// Empty where no launcher's variables are present. Throws UserError naming the variable that is missing, not a number
// or at odds with another.
std::optional<RankIdentity> rank_identity(const Environment& environment);

// First host of a Slurm node list: "gpu[07-09,12],login1" -> "gpu07". Throws UserError where the list cannot be read.
std::string first_slurm_host(const std::string& node_list);

}  // namespace ballast
