// A hardware profile as a JSON file (docs/formats/plan.md has the sibling formats). Keys end in their unit.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ballast/ir/hardware_profile.h"

namespace ballast {

std::string to_json(const HardwareProfile& profile);
// Throws UserError naming `where` and the key; does not judge the value: see violations().
HardwareProfile hardware_profile_from_json(std::string_view text, std::string_view where);

// Reads the file and refuses a profile with violations.
HardwareProfile read_hardware_profile(const std::filesystem::path& path);

}  // namespace ballast
