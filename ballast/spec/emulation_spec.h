// A cluster of slow network cards on one machine (tools/emulated_cluster), and the device that each of its ranks stands
// for: the file of `ballast train --emulate`. Ranks do real numerics on few tokens and then wait until the device would
// be done with many; their messages are real and travel the slow cards meanwhile.
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"
#include "ballast/base/units.h"

namespace ballast {

struct EmulationSpec {
  std::string name;
  std::string device;      // file of a device profile, relative to the emulation's own
  std::string model;       // preset of the model that the device is taken to run
  Tokens token_scale = 1;  // tokens that one token of the run stands for, in computation
  double dilation = 1;     // seconds here for one of the device
  int nodes = 1;
  int ranks_per_node = 1;
  int cards_per_node = 1;               // slot s of a node uses card s * cards / ranks
  double card_bits_per_second = 0;      // one way
  std::vector<double> card_rates = {};  // bits/s by card of a node, where they differ
  double card_efficiency = 1;           // data over all that a card carries, headers and acknowledgements too
  Seconds card_latency = 0;             // of a small message between nodes
  double node_bytes_per_second = 0;     // inside a node, measured
  Seconds node_latency = 0;

  int num_ranks() const { return nodes * ranks_per_node; }
  Violations violations() const;
  bool operator==(const EmulationSpec&) const = default;
};

}  // namespace ballast
