// Text to tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ballast {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string name() const = 0;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::int64_t eod() const = 0;  // the token that ends a document; -1: none

  // One list of tokens a text, in order. Throws RunError where the tokenizer fails.
  virtual std::vector<std::vector<std::uint32_t>> encode(std::span<const std::string> texts) = 0;
};

// A token a byte: vocabulary 256, or 257 where `with_eod` adds token 256.
std::unique_ptr<Tokenizer> byte_tokenizer(bool with_eod);

}  // namespace ballast
