// A group of one: every collective is complete at once and nothing touches a network. The neutral element that spares
// callers from asking for sizes.
#pragma once

#include <memory>
#include <string>

#include "ballast/runtime/comm/communicator.h"

namespace ballast {

std::unique_ptr<Communicator> make_solo_communicator(std::string name);

}  // namespace ballast
