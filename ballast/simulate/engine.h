// Runs a program: every rank goes through its operations on a clock of its own and waits only where an operation needs
// another rank. Nothing is shared but messages and collectives, so the result does not depend on the order in which
// ranks are advanced.
#pragma once

#include <string>

#include "ballast/simulate/program.h"

namespace ballast {

// Timeline of the step, all ranks starting at `begin`. A span's `wait` is the time before its last party arrived; the
// waits inside a compute span count to it as well. Throws RunError where the program has violations or never finishes,
// naming each rank that is stuck, at what, and for whom.
Timeline execute(const Program& program, std::string source, Seconds begin = 0);

}  // namespace ballast
