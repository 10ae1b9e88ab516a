// All the choices that a planner may make for a run (requirement L6): enumerated from what is asked for, the model and
// the cluster, and those that no rule allows turned away with the rule's name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ballast/spec/cluster_spec.h"
#include "ballast/spec/run_choice.h"

namespace ballast {

// Visits every choice of degrees, schedule, ZeRO stage, recomputation and windows a micro-batch: what decides a run's
// memory. `refused` is told what no rule allows, with the rule, and how many choices fall with it.
// Lists of run.plan that are empty stand for: tp of the powers of two in a node that divide heads and widths; cp of the
// powers of two up to 64; pp that divides what is left, up to the layers; virtual stages whose layers come out even
// (one less on the first and last allowed), rounds of pp, 2 pp and all micro-batches; ZeRO 1 to 3; recomputation or
// none; 1, 2 or 4 windows a micro-batch.
struct Frame {
  RunChoice choice;  // packer, sharding and mapping not chosen
};
void for_each_frame(const RunSpec& run, const ClusterSpec& cluster, const std::function<void(const Frame&)>& visit,
                    const std::function<void(const std::string& rule, const std::string& which)>& refused);

// The packers, shardings and mappings of a frame. Mappings that put every rank on the same GPU count once.
std::vector<RunChoice> completions(const RunSpec& run, const Frame& frame);

// The choices that differ from `choice` in one thing of the same degrees: packer, sharding, mapping, schedule, ZeRO
// stage, recomputation. Each with what differs: "packer plain".
std::vector<std::pair<std::string, RunChoice>> single_changes(const RunSpec& run, const RunChoice& choice);

}  // namespace ballast
