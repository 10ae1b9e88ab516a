// What a rank is told when communication fails.
#pragma once

#include <functional>
#include <string>

#include "ballast/runtime/comm/communicator.h"

namespace ballast::testing {

// Runs `body` and gives the message of the CommunicationError it throws.
inline std::string communication_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "no CommunicationError";
}

}  // namespace ballast::testing
