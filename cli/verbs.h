// The verbs of the command line, one file each. A verb registers its options and sets a callback; it throws UserError or
// RunError, and main.cpp turns those into one line and an exit code.
// Its footer is a worked example, "Example:\n  ballast VERB ...", which tests/cli/test_contract.py asks of every verb.
#pragma once

#include <CLI/CLI.hpp>

namespace ballast::cli {

void add_corpus(CLI::App& app);
void add_compare(CLI::App& app);
void add_report(CLI::App& app);
void add_trace(CLI::App& app);
void add_pack(CLI::App& app);
void add_shard(CLI::App& app);

}  // namespace ballast::cli
