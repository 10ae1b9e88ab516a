// A program under test: started with pipes, watched with bounds, never left behind.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ballast::testing_support {

class Subprocess {
 public:
  explicit Subprocess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});
  ~Subprocess();
  Subprocess(Subprocess&&) = default;

  pid_t pid() const;
  // The exit code; 128 + signal where one ended it; -1 (and it is killed) where it has not ended after `seconds`.
  int wait(double seconds);
  // Everything printed so far; all of it after wait().
  std::string output() const;
  std::string errors() const;
  bool wait_for_output(const std::string& text, double seconds) const;
  bool wait_for_errors(const std::string& text, double seconds) const;

  // A process started by this program, directly or not, that has NAME=VALUE in its environment; 0: none.
  pid_t child_with_environment(const std::string& entry) const;
  // Whether all processes this program started, directly or not, are gone within `seconds`.
  bool wait_until_group_is_gone(double seconds) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ballast::testing_support
