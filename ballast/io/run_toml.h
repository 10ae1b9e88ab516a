// RUN.toml: what a user states about a training run. Unknown sections and keys are refused with the nearest valid name;
// `--set section.key=value` overrides any key with the same rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ballast/spec/run_spec.h"

namespace ballast {

// `where` names the text in messages (a path). Relative paths in it stay relative to the working folder.
// `overrides` are "section.key=value" with a TOML value, or a bare word for a string.
// A model without vocab_size gets 0 here: the caller fills in the corpus's, then checks violations().
// Throws UserError: <where>: [section] key = value: what is allowed.
RunSpec run_spec_from_toml(std::string_view text, std::string_view where,
                           const std::vector<std::string>& overrides = {});

// Reads the file and applies the overrides.
RunSpec read_run_toml(const std::string& path, const std::vector<std::string>& overrides = {});

// Every key with its value: what a run folder keeps. run_spec_from_toml(to_toml(spec)) == spec.
std::string to_toml(const RunSpec& spec);

}  // namespace ballast
