// The file of an emulated cluster, which tools/emulated_cluster reads, too.
#pragma once

#include <filesystem>
#include <string_view>

#include "ballast/spec/emulation_spec.h"

namespace ballast {

// Throws UserError naming `where` and the key; all keys but card_rates must be there.
EmulationSpec emulation_from_toml(std::string_view text, std::string_view where);
// `device` as a path from here. Throws UserError also for violations.
EmulationSpec read_emulation(const std::filesystem::path& path);

}  // namespace ballast
