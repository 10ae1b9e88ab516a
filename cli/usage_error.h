// One line for a command line that does not parse: which word is at fault, the nearest valid one, where to read on.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ballast::cli {

// `app` is what parsed and threw `error`. An unknown word is named before an option that is missing: it is most often
// that option, misspelt.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace ballast::cli
