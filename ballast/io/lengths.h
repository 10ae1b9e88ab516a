// Document lengths, from whatever a user has (docs/formats/lengths.md):
//   one number a line           512            (16K and 2M too)
//   JSONL                       {"length": 512, "domain": "code"}    ("tokens" for "length"; numbers may be mixed in)
//   a JSON list                 [512, 4096]    (or of such objects)
//   CSV with a header           a column length or tokens, domain where there is one
//   a histogram                 {"[0,1024)": 0.9, "[1024,8192)": 0.1}: shares, sampled with a seed
//   a corpus folder, or `-` for standard input in any of the text forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/units.h"

namespace ballast {

struct DocumentLengths {
  std::vector<Tokens> lengths;            // in order
  std::vector<int> domains;               // of every document: index into domain_names
  std::vector<std::string> domain_names;  // in order of appearance; a document without one is of "all"
  bool sampled = false;                   // drawn from a histogram
};

// How many documents a histogram becomes, and from which seed. Inside a bin that more than doubles, lengths are drawn
// evenly over their logarithm, as long tails fall; inside a narrower one evenly.
struct HistogramSampling {
  std::int64_t documents = 10000;
  std::uint64_t seed = 1;
};

// Throws UserError naming the path, the line and what is wrong: no document, a length that is no number from 1 to 2^31.
DocumentLengths read_lengths(const std::string& path, const HistogramSampling& sampling = {});

// The same of text; `where` names it in messages.
DocumentLengths parse_lengths(std::string_view text, std::string_view where, const HistogramSampling& sampling = {});

}  // namespace ballast
