// Options that take counts of tokens as people write them, 4096, 128K or 16M, and lists of such.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ballast/base/units.h"

namespace ballast::cli {

// Throws UserError naming the option.
Tokens size_of_text(const std::string& option, const std::string& text);
// "4K,16K"
std::vector<Tokens> sizes_of_text(const std::string& option, const std::string& text);

// Adds `option`, such as "--window", that sets `value`. `value` must outlive the parse.
CLI::Option* add_size_option(CLI::App& app, const std::string& option, Tokens& value, const std::string& description);

// 131072 as "131,072".
std::string grouped(std::int64_t count);

}  // namespace ballast::cli
