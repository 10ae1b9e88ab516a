#include "cli/report_page.h"

#include <initializer_list>

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

std::string page_of(std::string_view html, std::initializer_list<const char*> scripts, std::string_view title,
                    const nlohmann::ordered_json& data) {
  std::string script;
  for (const char* name : scripts) script += embedded_text(name);
  std::string page(embedded_text(html));
  // Data goes in last, so that no placeholder inside it is taken for one.
  replace_once(page, "@STYLE@", embedded_text("page.css"));
  replace_once(page, "@SCRIPT@", script);
  replace_once(page, "@TITLE@", html_escaped(title));
  replace_once(page, "@DATA@", json_for_script(data));
  return page;
}

}  // namespace

std::string report_page(std::string_view title, const nlohmann::ordered_json& data) {
  return page_of("page.html",
                 {"format.js", "charts.js", "timeline.js", "waits.js", "steps.js", "documents.js", "page.js"}, title,
                 data);
}

std::string plan_page(std::string_view title, const nlohmann::ordered_json& data) {
  return page_of("plan.html", {"format.js", "charts.js", "plan.js"}, title, data);
}

}  // namespace ballast::cli
