#include "cli/size_option.h"

#include "ballast/base/error.h"
#include "ballast/io/json_reader.h"
#include "ballast/io/size_text.h"

namespace ballast::cli {

Tokens size_of_text(const std::string& option, const std::string& text) {
  const std::optional<std::int64_t> size = parse_size(text);
  if (!size || *size > kLargestCount) {
    throw UserError(option + " = " + text + ": must be a whole number of tokens, such as 4096, 128K or 16M");
  }
  return *size;
}

std::vector<Tokens> sizes_of_text(const std::string& option, const std::string& text) {
  std::vector<Tokens> sizes;
  std::string::size_type at = 0;
  while (at <= text.size()) {
    const std::string::size_type comma = std::min(text.find(',', at), text.size());
    sizes.push_back(size_of_text(option, text.substr(at, comma - at)));
    at = comma + 1;
  }
  return sizes;
}

CLI::Option* add_size_option(CLI::App& app, const std::string& option, Tokens& value, const std::string& description) {
  return app
      .add_option_function<std::string>(
          option, [option, &value](const std::string& text) { value = size_of_text(option, text); }, description)
      ->type_name("TOKENS");
}

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return (count < 0 ? "-" : "") + digits;
}

}  // namespace ballast::cli
