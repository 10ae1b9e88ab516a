// The one line that a call refuses its input with; empty where it does not throw UserError.
#pragma once

#include <string>

#include "ballast/base/error.h"

namespace ballast::testing {

template <class Call>
std::string user_error(Call&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

}  // namespace ballast::testing
