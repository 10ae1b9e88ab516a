// The engine in order of time, for transfers that overlap on a link: what the engine of engine.h does, but that an
// exchange slows down while others use the same link of any of its members, and they with it (requirement L5). Slower
// than that engine by a good deal: for hundreds of ranks.
#pragma once

#include <map>
#include <string>

#include "ballast/simulate/program.h"

namespace ballast {

// Which fabric tier the exchanges of an axis use; a message between stages uses that of Axis::pp. Exchanges of an axis
// that is not named share nothing.
using LinkTiers = std::map<Axis, int>;

// A rank has a link to each tier and one from it. An exchange's duration in the program is what it takes alone; while k
// transfers are on the most crowded of its links, it moves at 1/k of that. A message occupies the link from its sender
// and the one to its receiver, a collective both of every member. The timeline is as of execute(); on links that nobody
// shares it is the same, but that a rank whose part in rings (ring_pass.h) is done before the last of its group came to
// them goes on only then. Throws RunError as execute() does.
Timeline execute_on_shared_links(const Program& program, const LinkTiers& tiers, std::string source);

}  // namespace ballast
