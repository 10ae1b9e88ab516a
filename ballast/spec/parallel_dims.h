// The degrees of parallelism of a run, and where a global rank sits in them. Ranks are laid out from the inside out as
// CP, PP, DP (Llama 3 §3.3, requirement L5: the most frequent collectives on the nearest ranks):
//     rank = (dp * pp_size + pp) * cp_size + cp
// Tensor parallelism, when it comes, is the innermost axis.
#pragma once

#include <string>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

struct RankCoordinate {
  int dp = 0;
  int pp = 0;
  int cp = 0;
  bool operator==(const RankCoordinate&) const = default;
};

struct ParallelDims {
  int dp = 1;
  int pp = 1;
  int cp = 1;

  int world_size() const { return dp * pp * cp; }
  RankCoordinate coordinate(int rank) const;
  int rank(const RankCoordinate& at) const;

  // The ranks that share a collective with `rank`, in axis order. A group of one is an ordinary group.
  std::vector<int> cp_group(int rank) const;     // same dp and pp: exchange keys and values
  std::vector<int> pp_group(int rank) const;     // same dp and cp: a pipeline
  std::vector<int> dp_cp_group(int rank) const;  // same pp: hold the same parameters, so reduce their gradients
  std::vector<int> tied_group(int rank) const;   // first and last stage of a pipeline: share a tied embedding

  Violations violations() const;
  bool operator==(const ParallelDims&) const = default;
};

std::string to_string(const ParallelDims& dims);  // "dp 2 x pp 2 x cp 2"

}  // namespace ballast
