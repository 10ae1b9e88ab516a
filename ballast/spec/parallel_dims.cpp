#include "ballast/spec/parallel_dims.h"

namespace ballast {

RankCoordinate ParallelDims::coordinate(int rank) const {
  return {.dp = rank / (pp * cp), .pp = rank / cp % pp, .cp = rank % cp};
}

int ParallelDims::rank(const RankCoordinate& at) const { return (at.dp * pp + at.pp) * cp + at.cp; }

std::vector<int> ParallelDims::cp_group(int rank) const {
  RankCoordinate at = coordinate(rank);
  std::vector<int> group;
  for (at.cp = 0; at.cp < cp; ++at.cp) group.push_back(this->rank(at));
  return group;
}

std::vector<int> ParallelDims::pp_group(int rank) const {
  RankCoordinate at = coordinate(rank);
  std::vector<int> group;
  for (at.pp = 0; at.pp < pp; ++at.pp) group.push_back(this->rank(at));
  return group;
}

std::vector<int> ParallelDims::dp_cp_group(int rank) const {
  RankCoordinate at = coordinate(rank);
  std::vector<int> group;
  for (at.dp = 0; at.dp < dp; ++at.dp) {
    for (at.cp = 0; at.cp < cp; ++at.cp) group.push_back(this->rank(at));
  }
  return group;
}

std::vector<int> ParallelDims::tied_group(int rank) const {
  RankCoordinate at = coordinate(rank);
  std::vector<int> group;
  at.pp = 0;
  group.push_back(this->rank(at));
  at.pp = pp - 1;
  if (pp > 1) group.push_back(this->rank(at));
  return group;
}

Violations ParallelDims::violations() const {
  Violations found;
  for (const auto& [name, degree] : {std::pair{"dp", dp}, {"pp", pp}, {"cp", cp}}) {
    if (degree < 1) found.push_back(std::string(name) + " = " + std::to_string(degree) + ": a degree is 1 or more");
  }
  return found;
}

std::string to_string(const ParallelDims& dims) {
  return "dp " + std::to_string(dims.dp) + " x pp " + std::to_string(dims.pp) + " x cp " + std::to_string(dims.cp);
}

}  // namespace ballast
