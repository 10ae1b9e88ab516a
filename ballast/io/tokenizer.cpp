#include "ballast/io/tokenizer.h"

namespace ballast {

namespace {

class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(bool with_eod) : with_eod_(with_eod) {}

  std::string name() const override { return "bytes"; }
  std::int64_t vocab_size() const override { return with_eod_ ? 257 : 256; }
  std::int64_t eod() const override { return with_eod_ ? 256 : -1; }

  std::vector<std::vector<std::uint32_t>> encode(std::span<const std::string> texts) override {
    std::vector<std::vector<std::uint32_t>> tokens;
    for (const std::string& text : texts) {
      std::vector<std::uint32_t>& ids = tokens.emplace_back();
      ids.reserve(text.size());
      for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    }
    return tokens;
  }

 private:
  bool with_eod_;
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer(bool with_eod) { return std::make_unique<ByteTokenizer>(with_eod); }

}  // namespace ballast
