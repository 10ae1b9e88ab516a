// A cluster as a TOML file (profiles/clusters/*.toml; docs/formats/profiles.md).
#pragma once

#include <filesystem>
#include <string_view>

#include "ballast/spec/cluster_spec.h"

namespace ballast {

// Throws UserError naming `where` and the key: unknown, missing, of another type. Does not judge the values.
ClusterSpec cluster_from_toml(std::string_view text, std::string_view where);

// Reads the file, refuses a cluster with violations, and makes `device` a path from where the program runs.
ClusterSpec read_cluster(const std::filesystem::path& path);

}  // namespace ballast
