#include "ballast/runtime/launch/stop_signal.h"

#include <csignal>

namespace ballast {
namespace {

volatile std::sig_atomic_t g_stop_requested = 0;

void on_signal(int) { g_stop_requested = 1; }

}  // namespace

void install_stop_signal() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // no system call of ours or of a library fails because of it
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    sigaction(signal, &action, nullptr);
    sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool stop_requested() { return g_stop_requested != 0; }

}  // namespace ballast
