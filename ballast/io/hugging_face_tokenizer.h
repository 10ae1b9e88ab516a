// A tokenizer.json of Hugging Face, run by their `tokenizers` library in a Python process beside this one
// (python/ballast/tokenize_stream.py), a batch of texts at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "ballast/io/tokenizer.h"

namespace ballast {

// The Python of the project's .venv, as configured when this was built.
std::string default_python();

// `eod_token`: text of the token that ends a document; empty looks for the usual names of it.
// No special tokens are added to a text. A child that dies ends the next call with its last line of stderr; none is
// left running once the tokenizer is destroyed. Throws UserError: no such file, not a tokenizer, no such token, no such
// Python, or the library missing in it.
std::unique_ptr<Tokenizer> hugging_face_tokenizer(const std::filesystem::path& file, const std::string& python,
                                                  const std::string& eod_token);

}  // namespace ballast
