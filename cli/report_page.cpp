#include "cli/report_page.h"

#include <string>
#include <vector>

namespace ballast::cli {

namespace {

void replace_once(std::string& text, std::string_view placeholder, std::string_view by) {
  text.replace(text.find(placeholder), placeholder.size(), by);
}

// In a script element only "<" can end the script or open a comment; inside JSON it may be written as an escape.
std::string json_for_script(const nlohmann::ordered_json& data) {
  const std::string plain = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size() + plain.size() / 64);
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string html_escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

struct PageParts {
  std::vector<const char*> scripts;
  std::vector<const char*> sections;  // ids, in order
  const char* main;                   // the section that the page is for
};

std::string page_of(const PageParts& parts, std::string_view title, const nlohmann::ordered_json& data) {
  std::string script;
  for (const char* name : parts.scripts) script += embedded_text(name);
  std::string sections;
  for (const std::string id : parts.sections) {
    sections += "<section id=\"" + id + "\" aria-labelledby=\"" + id + "-title\"></section>\n";
  }
  std::string page(embedded_text("page.html"));
  // Data goes in last, so that no placeholder inside it is taken for one.
  replace_once(page, "@STYLE@", embedded_text("page.css"));
  replace_once(page, "@MAIN@", parts.main);
  replace_once(page, "@MAIN@", parts.main);
  replace_once(page, "@SECTIONS@", sections);
  replace_once(page, "@SCRIPT@", script);
  replace_once(page, "@TITLE@", html_escaped(title));
  replace_once(page, "@DATA@", json_for_script(data));
  return page;
}

}  // namespace

std::string report_page(std::string_view title, const nlohmann::ordered_json& data) {
  return page_of({.scripts = {"format.js", "charts.js", "timeline.js", "waits.js", "queues.js", "zones.js",
                              "placement.js", "run_placement.js", "steps.js", "documents.js", "page.js"},
                  .sections = {"figures", "timeline", "waits", "placement", "zones", "steps", "documents", "about"},
                  .main = "timeline"},
                 title, data);
}

std::string placement_page(std::string_view title, const nlohmann::ordered_json& data) {
  return page_of(
      {.scripts = {"format.js", "charts.js", "queues.js", "zones.js", "placement.js", "sharders.js", "explain.js"},
       .sections = {"placement", "sharders", "zones"},
       .main = "placement"},
      title, data);
}

std::string plan_page(std::string_view title, const nlohmann::ordered_json& data) {
  return page_of({.scripts = {"format.js", "charts.js", "queues.js", "zones.js", "placement.js", "plan.js"},
                  .sections = {"candidates", "variations", "placement", "zones", "degrees", "about"},
                  .main = "candidates"},
                 title, data);
}

}  // namespace ballast::cli
