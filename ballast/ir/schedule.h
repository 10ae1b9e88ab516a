// A pipeline schedule is data: for every pipeline rank, the actions it runs, in order. Stage s lives on rank s mod P.
// Text follows PyTorch's pipelining: stage, action, micro-batch, as in `2F0`, `3SEND_F1`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

enum class ActionKind {
  F,       // forward of a stage
  B,       // backward of a stage, inputs and weights
  SEND_F,  // send the stage's output to stage + 1
  RECV_F,  // receive the stage's input from stage - 1
  SEND_B,  // send the gradient of the stage's input to stage - 1
  RECV_B,  // receive the gradient of the stage's output from stage + 1
};

struct Action {
  int stage = 0;
  ActionKind kind = ActionKind::F;
  int micro_batch = 0;
  bool operator==(const Action&) const = default;
};

struct Schedule {
  std::string name;           // "1f1b", "interleaved"
  int num_ranks = 1;          // P
  int virtual_stages = 1;     // V
  int num_micro_batches = 1;  // N of one pipeline
  std::vector<std::vector<Action>> ranks;

  int num_stages() const { return num_ranks * virtual_stages; }
  int rank_of_stage(int stage) const { return stage % num_ranks; }

  // The most forwards of this rank whose backward is still to come: activations it must hold, in virtual stages.
  int max_in_flight(int rank) const;

  // Every F and B once, on the right rank, in an order that finishes; where sends and receives are present, each has
  // its partner and its place. Deadlock is found by running the schedule with sends that do not block.
  Violations violations() const;
  // The same for a transport whose sends block until the other side receives (a rendezvous), where what a rank
  // exchanges between two computations is posted as one batch. REQUIRES: violations() is empty and sends are there.
  Violations violations_where_sends_block() const;
  bool operator==(const Schedule&) const = default;
};

std::string to_string(ActionKind kind);
std::string to_string(const Action& action);      // "2F0"
std::string to_string(const Schedule& schedule);  // a header line, then a line a rank
Action parse_action(std::string_view text);       // throws UserError naming the text
Schedule parse_schedule(std::string_view text);   // inverse of to_string(Schedule)

}  // namespace ballast
