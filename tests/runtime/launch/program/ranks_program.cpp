// What the launcher's tests launch: `ranks_program NPROC TIMEOUT MODE [RANK]` starts NPROC ranks of itself, which step
// through collectives until they are told to end or, in the given rank, something goes wrong as MODE says.
// Started by another launcher (torchrun) it is one rank of it.
#include <ATen/ATen.h>

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "ballast/base/error.h"
#include "ballast/runtime/comm/mesh.h"
#include "ballast/runtime/launch/launcher.h"
#include "ballast/runtime/launch/rank_session.h"
#include "ballast/runtime/launch/stop_signal.h"

namespace {

using namespace ballast;

constexpr int kStepOfFault = 3;

void misbehave(const std::string& mode, Mesh& mesh) {
  if (mode == "throw") throw RunError("the loss is not finite");
  if (mode == "user") throw UserError("run.toml: corpus = \"nowhere\": no such folder");
  if (mode == "exit") std::_Exit(7);
  if (mode == "leave") std::_Exit(0);
  if (mode == "kill") raise(SIGKILL);
  if (mode == "segfault") raise(SIGSEGV);
  if (mode == "stop") raise(SIGSTOP);
  if (mode == "closed-socket") {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::logic_error("no socket");
    close(ends[1]);
    if (write(ends[0], "x", 1) < 0) throw std::logic_error("the socket was closed");
  }
  if (mode == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  if (mode == "mismatch") mesh.world->barrier();
}

void step_until_done(RankSession& session, const std::string& mode, int faulty_rank, double timeout) {
  session.check_together([&] {
    if (mode == "refuse" && session.identity().rank == faulty_rank) {
      throw UserError("run.toml: corpus = \"nowhere\": no such folder");
    }
  });
  SpanRecorder recorder(session.identity().rank, session.epoch(), session);
  GlooOptions options{.address = session.gloo_address(), .timeout = timeout, .observer = &recorder};
  const ParallelDims dims{.dp = session.identity().world_size, .pp = 1, .cp = 1};
  Mesh mesh = make_mesh(dims, session.identity().rank, session.store(), options);
  session.settle();
  const int rank = mesh.rank;
  const int last_step = mode == "run" ? 5 : 1 << 30;
  for (int step = 1; step <= last_step; ++step) {
    session.at_action("step " + std::to_string(step) + ": F");
    if (step == kStepOfFault && (rank == faulty_rank || mode == "user-everywhere")) {
      misbehave(mode == "user-everywhere" ? "user" : mode, mesh);
    }
    at::Tensor sum = at::full({3}, rank + 1, at::kLong);
    mesh.dp_cp->all_reduce(sum);
    if (sum[0].item<std::int64_t>() != dims.dp * (dims.dp + 1) / 2) throw std::logic_error("wrong sum");
    at::Tensor stop = at::full({1}, stop_requested() ? 1 : 0, at::kLong);
    mesh.world->all_reduce(stop, ReduceOp::max);
    if (rank == 0) {
      std::printf("step %d\n", step);
      std::fflush(stdout);
    }
    if (stop.item<std::int64_t>() != 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (rank == 0) std::printf("done: %s\n", to_string(session.share()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  const double timeout = std::atof(argv[2]);
  const std::string mode = argv[3];
  const int faulty_rank = argc > 4 ? std::atoi(argv[4]) : -1;
  try {
    const auto identity = rank_identity(process_environment());
    if (!identity) {
      LocalLaunch launch;
      launch.num_ranks = std::atoi(argv[1]);
      launch.arguments.assign(argv, argv + argc);
      launch.timeout = timeout;
      return launch_local_ranks(launch);
    }
    LaunchSpec spec;
    spec.timeout_seconds = timeout;
    return run_as_rank(*identity, spec,
                       [&](RankSession& session) { step_until_done(session, mode, faulty_rank, timeout); });
  } catch (const UserError& error) {
    std::fprintf(stderr, "ballast: %s\n", error.what());
    return 2;
  }
}
