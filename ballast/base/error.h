// The three kinds of error, kept apart by type.
//   UserError   the input is at fault: one line naming file, key, value and what would work. The program exits with 2.
//   RunError    the work itself failed (a peer died, a disk is full, a loss is not finite). The program exits with 1.
//   BALLAST_ASSERT  a bug: no input may reach it. It prints the place and aborts.
// Infeasible is not an error but a result, and carries its reason as a value.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ballast {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What violations() of a value returns: one sentence a rule broken, empty where the value may be trusted.
using Violations = std::vector<std::string>;

// Throws UserError naming `where` and the first violation, if there is any.
void require_valid(const Violations& violations, std::string_view where);

// The nearest of `names` to `misspelt` by edit distance, or an empty string where none is near (distance over 1/2 of
// the length). For messages such as: unknown packer "pain"; did you mean "plain"?
std::string nearest_name(std::string_view misspelt, const std::vector<std::string>& names);

// "plain, fixed-greedy, wlb"
std::string join(const std::vector<std::string>& names, std::string_view separator = ", ");

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, std::string_view why);

}  // namespace ballast

#define BALLAST_ASSERT(condition, why) \
  ((condition) ? static_cast<void>(0) : ::ballast::assertion_failed(#condition, __FILE__, __LINE__, why))
