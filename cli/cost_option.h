// The cost model a verb plans with: --cost A,B, or --profile, --cluster or --emulate FILE with --model NAME.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "ballast/cost/cost_model.h"

namespace ballast::cli {

struct CostOptions {
  std::string cost;     // "A,B"
  std::string profile;  // file
  std::string cluster;  // file of a cluster that is not at hand
  std::string emulate;  // file of an emulated cluster
  std::string model;    // preset, or a RUN.toml
  int tp = 1;           // of a cluster: GPUs of a tensor parallel group
};

// `options` must outlive the parse.
void add_cost_options(CLI::App& app, CostOptions& options);

// Throws UserError: malformed, contradictory, or a profile of another model. With no option given, the cost of a layer
// 4,096 wide: 24 x 4096^2 FLOPs a token against 4 x 4096 a query-key pair, that is 24,576 a token and 1 a squared
// token. `cp`: ranks of the context parallel group that is placed on a cluster.
std::unique_ptr<CostModel> make_cost(const CostOptions& options, int cp = 1);

}  // namespace ballast::cli
