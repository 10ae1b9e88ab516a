#include "cli/usage_error.h"

#include <algorithm>
#include <vector>

#include "ballast/base/error.h"

namespace ballast::cli {
namespace {

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// "unknown option --windw; did you mean --window?"; where no name is near, the names there are.
std::string unknown(const std::string& kind, const std::string& word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return "unknown " + kind + " " + word +
         (nearest.empty() ? "; there is " + join(names) : "; did you mean " + nearest + "?");
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  std::string command = "ballast";
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    command += " " + verb->get_name();
  }
  std::string what = error.what();
  const std::vector<std::string> rest = verb->remaining();
  const auto option =
      std::find_if(rest.begin(), rest.end(), [](const std::string& word) { return word.rfind('-', 0) == 0; });
  if (option != rest.end()) {
    what = unknown("option", option->substr(0, option->find('=')), option_names(*verb));
  } else if (!rest.empty()) {
    const std::vector<std::string> verbs = verb_names(*verb);
    what = verbs.empty() ? "unexpected argument " + rest.front() : unknown("verb", rest.front(), verbs);
  } else if (!verb_names(*verb).empty()) {
    what = "a verb is needed: " + join(verb_names(*verb));
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  return command + ": " + what + " (see " + command + " --help)";
}

}  // namespace ballast::cli
