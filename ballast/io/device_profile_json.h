// A device profile as a JSON file (profiles/*.json; docs/formats/profiles.md).
#pragma once

#include <filesystem>
#include <string_view>

#include "ballast/ir/device_profile.h"

namespace ballast {

// Throws UserError naming `where` and the key; does not judge the value: see violations().
DeviceProfile device_profile_from_json(std::string_view text, std::string_view where);

// Reads the file and refuses a profile with violations.
DeviceProfile read_device_profile(const std::filesystem::path& path);

}  // namespace ballast
