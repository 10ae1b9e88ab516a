#include "ballast/ir/document.h"

namespace ballast {

Violations Document::violations() const {
  Violations found;
  const std::string name = "document " + std::to_string(id);
  if (id < 0) found.push_back(name + ": id must be 0 or more");
  if (begin < 0) found.push_back(name + ": begin = " + std::to_string(begin) + " must be 0 or more");
  if (length < 0) found.push_back(name + ": length = " + std::to_string(length) + " must be 0 or more");
  if (domain < 0) found.push_back(name + ": domain = " + std::to_string(domain) + " must be 0 or more");
  return found;
}

std::string to_string(const Document& document) {
  return std::to_string(document.id) + "[" + std::to_string(document.begin) + "," +
         std::to_string(document.begin + document.length) + ")" + (document.ends ? "*" : "");
}

}  // namespace ballast
