// The verbs of the command line, one file each. A verb registers its options and sets a callback; it throws UserError
// or RunError, and main.cpp turns those into one line and an exit code. Its footer is a worked example, "Example:\n
// ballast VERB ...", which tests/cli/test_contract.py asks of every verb.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace ballast::cli {

// Thrown by a verb whose work has said all there is to say: main() exits with the code.
struct ExitRequest {
  int code = 0;
};

void add_corpus(CLI::App& app);
void add_compare(CLI::App& app);
void add_report(CLI::App& app);
void add_trace(CLI::App& app);
void add_analyze(CLI::App& app);
void add_pack(CLI::App& app);
void add_shard(CLI::App& app);
void add_simulate(CLI::App& app, const std::vector<std::string>& arguments);
void add_plan(CLI::App& app);
// `arguments`: the whole command line, which the ranks run again.
void add_train(CLI::App& app, const std::vector<std::string>& arguments);
void add_profile(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_explain(CLI::App& app);

}  // namespace ballast::cli
