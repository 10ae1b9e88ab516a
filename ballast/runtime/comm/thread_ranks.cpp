#include "ballast/runtime/comm/thread_ranks.h"

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ballast {

void run_thread_ranks(int num_ranks,
                      const std::function<void(int rank, c10::intrusive_ptr<c10d::Store> store)>& rank_main,
                      Seconds timeout) {
  std::mutex mutex;
  std::condition_variable one_ended;
  std::vector<bool> ended(static_cast<std::size_t>(num_ranks), false);
  int num_ended = 0;
  std::exception_ptr first_error;
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();

  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);  // or each would compute on all cores, and half the time goes into threads that wait
      std::exception_ptr error;
      try {
        rank_main(rank, store);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (error && !first_error) first_error = error;
      ended[static_cast<std::size_t>(rank)] = true;
      ++num_ended;
      one_ended.notify_all();
    });
  }
  {
    std::unique_lock lock(mutex);
    if (!one_ended.wait_for(lock, std::chrono::duration<double>(timeout), [&] { return num_ended == num_ranks; })) {
      std::string running;
      for (int rank = 0; rank < num_ranks; ++rank) {
        if (!ended[static_cast<std::size_t>(rank)]) running += " " + std::to_string(rank);
      }
      std::fprintf(stderr, "run_thread_ranks: still running after %.0f s: ranks%s\n", timeout, running.c_str());
      std::_Exit(1);
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

void run_thread_mesh(const ParallelDims& dims, const std::function<void(Mesh& mesh)>& rank_main,
                     Seconds group_timeout) {
  run_thread_ranks(dims.world_size(), [&](int rank, const c10::intrusive_ptr<c10d::Store>& store) {
    GlooOptions options;
    options.timeout = group_timeout;
    Mesh mesh = make_mesh(dims, rank, store, options);
    rank_main(mesh);
  });
}

}  // namespace ballast
