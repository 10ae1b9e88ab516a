#include "ballast/runtime/profiler/profile_key.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <fstream>
#include <string>

namespace ballast {

namespace {

// "AMD EPYC": of the first processor, or the architecture where the system does not say.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unnamed processor";
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

ProfileKey key_of_this_machine(const ModelSpec& model, Precision precision, int threads) {
  return {.device = processor_name() + ", " + lower(at::get_cpu_capability()),
          .kernel_build = "torch " TORCH_VERSION,
          .precision = to_string(precision),
          .mapping = to_string(model) + ", threads " + std::to_string(threads)};
}

}  // namespace ballast
