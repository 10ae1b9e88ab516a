// The verbs of the command line, one file each. A verb registers its options and sets a callback; it throws UserError or
// RunError, and main.cpp turns those into one line and an exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace ballast::cli {

}  // namespace ballast::cli
