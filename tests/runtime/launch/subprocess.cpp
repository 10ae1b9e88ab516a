#include "tests/runtime/launch/subprocess.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>

namespace ballast::testing_support {
namespace {

using Clock = std::chrono::steady_clock;

bool until(double seconds, const std::function<bool()>& condition) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// The environment of a process as its entries with \0 between; empty where it is gone or not ours.
std::string environment_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool has_entry(const std::string& environment, const std::string& entry) {
  return ('\0' + environment).find('\0' + entry + '\0') != std::string::npos;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid > 0) pids.push_back(pid);
  }
  closedir(proc);
  return pids;
}

}  // namespace

struct Subprocess::State {
  pid_t pid = 0;
  bool reaped = false;
  int code = -1;
  std::string mark;  // an environment entry that all its descendants inherit
  mutable std::mutex mutex;
  std::string texts[2];
  std::thread readers[2];
};

Subprocess::Subprocess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment)
    : state_(std::make_unique<State>()) {
  static std::atomic<int> next_mark = 0;
  state_->mark = "BALLAST_TEST_MARK=" + std::to_string(getpid()) + "." + std::to_string(next_mark++);
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> entries = environment;
  entries.push_back(state_->mark);
  for (char** entry = environ; *entry != nullptr; ++entry) entries.push_back(*entry);
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (std::string& text : argument_texts) argv.push_back(text.data());
  for (std::string& text : entries) envp.push_back(text.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  int pipes[2][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  state_->pid = fork();
  if (state_->pid == 0) {
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  for (int i = 0; i < 2; ++i) {
    close(pipes[i][1]);
    state_->readers[i] = std::thread([state = state_.get(), i, fd = pipes[i][0]] {
      char buffer[4096];
      for (ssize_t count = 0; (count = read(fd, buffer, sizeof buffer)) > 0;) {
        const std::lock_guard lock(state->mutex);
        state->texts[i].append(buffer, static_cast<std::size_t>(count));
      }
      close(fd);
    });
  }
}

Subprocess::~Subprocess() {
  if (!state_) return;
  if (!state_->reaped) wait(0);
  for (const pid_t pid : all_processes()) {
    if (has_entry(environment_of(pid), state_->mark)) kill(pid, SIGKILL);
  }
  for (std::thread& reader : state_->readers) {
    if (reader.joinable()) reader.join();
  }
}

pid_t Subprocess::pid() const { return state_->pid; }

int Subprocess::wait(double seconds) {
  int status = 0;
  if (!until(seconds, [&] { return waitpid(state_->pid, &status, WNOHANG) == state_->pid; })) {
    kill(state_->pid, SIGKILL);
    waitpid(state_->pid, &status, 0);
    state_->reaped = true;
    return -1;
  }
  state_->reaped = true;
  // Its output ends when the last of its processes does, if none is left behind.
  if (wait_until_group_is_gone(5)) {
    for (std::thread& reader : state_->readers) reader.join();
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string Subprocess::output() const {
  const std::lock_guard lock(state_->mutex);
  return state_->texts[0];
}

std::string Subprocess::errors() const {
  const std::lock_guard lock(state_->mutex);
  return state_->texts[1];
}

bool Subprocess::wait_for_output(const std::string& text, double seconds) const {
  return until(seconds, [&] { return output().find(text) != std::string::npos; });
}

bool Subprocess::wait_for_errors(const std::string& text, double seconds) const {
  return until(seconds, [&] { return errors().find(text) != std::string::npos; });
}

pid_t Subprocess::child_with_environment(const std::string& entry) const {
  for (const pid_t pid : all_processes()) {
    const std::string environment = environment_of(pid);
    if (has_entry(environment, state_->mark) && has_entry(environment, entry)) return pid;
  }
  return 0;
}

bool Subprocess::wait_until_group_is_gone(double seconds) const {
  return until(seconds, [&] {
    for (const pid_t pid : all_processes()) {
      if (has_entry(environment_of(pid), state_->mark)) return false;
    }
    return true;
  });
}

}  // namespace ballast::testing_support
