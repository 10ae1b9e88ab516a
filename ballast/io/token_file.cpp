#include "ballast/io/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/base/error.h"

namespace ballast {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and are mapped as they are");

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kVersion = 1;
constexpr Bytes kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr Tokens kLongestSequence = std::numeric_limits<std::int32_t>::max();

// The arrays of an .idx start at byte 34: nothing in it is aligned.
template <class T>
T load(std::span<const std::byte> bytes, Bytes offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::filesystem::path with_suffix(const std::filesystem::path& prefix, const char* suffix) {
  return prefix.string() + suffix;
}

}  // namespace

Bytes size_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::int16:
    case TokenType::uint16:
      return 2;
    case TokenType::int32:
      return 4;
    case TokenType::int64:
      return 8;
  }
  return 0;  // a code of a file that is none of these
}

TokenType token_type_for(std::int64_t vocab_size) { return vocab_size < 65500 ? TokenType::uint16 : TokenType::int32; }

TokenFileWriter::TokenFileWriter(const std::filesystem::path& prefix, TokenType type)
    : type_(type),
      bin_(with_suffix(prefix, ".bin")),
      idx_(with_suffix(prefix, ".idx")),
      sequence_lengths_(prefix.parent_path()),
      document_sequences_(prefix.parent_path()) {
  BALLAST_ASSERT(type == TokenType::uint16 || type == TokenType::int32, "the writer knows Megatron's two usual types");
}

void TokenFileWriter::append(std::span<const std::uint32_t> tokens) {
  const std::uint32_t limit = type_ == TokenType::uint16 ? 0xffffU : 0x7fffffffU;
  while (!tokens.empty()) {
    const std::size_t room = static_cast<std::size_t>(kLongestSequence - open_tokens_);
    const std::span<const std::uint32_t> part = tokens.first(std::min({tokens.size(), room, std::size_t{1} << 15}));
    if (type_ == TokenType::uint16) {
      std::array<std::uint16_t, 1 << 15> narrow;
      for (std::size_t i = 0; i < part.size(); ++i) {
        BALLAST_ASSERT(part[i] <= limit, "a token fits its type");
        narrow[i] = static_cast<std::uint16_t>(part[i]);
      }
      bin_.write({reinterpret_cast<const char*>(narrow.data()), part.size() * sizeof(std::uint16_t)});
    } else {
      for (const std::uint32_t token : part) BALLAST_ASSERT(token <= limit, "a token fits its type");
      bin_.write({reinterpret_cast<const char*>(part.data()), part.size_bytes()});
    }
    open_tokens_ += static_cast<Tokens>(part.size());
    // A length is 32 bits in the .idx, so a document of more tokens becomes several sequences.
    if (open_tokens_ == kLongestSequence) end_sequence();
    tokens = tokens.subspan(part.size());
  }
}

void TokenFileWriter::end_sequence() {
  sequence_lengths_.append(static_cast<std::int32_t>(open_tokens_));
  ++num_sequences_;
  num_tokens_ += open_tokens_;
  open_tokens_ = 0;
}

void TokenFileWriter::end_document() {
  end_sequence();
  document_sequences_.append(num_sequences_);
  ++num_documents_;
}

void TokenFileWriter::commit() {
  BALLAST_ASSERT(open_tokens_ == 0, "end_document() before commit()");
  idx_.write(kMagic);
  idx_.write(bytes_of(kVersion));
  idx_.write(bytes_of(static_cast<std::uint8_t>(type_)));
  idx_.write(bytes_of(num_sequences_));
  idx_.write(bytes_of(num_documents_ + 1));
  sequence_lengths_.replay<std::int32_t>([&](std::int32_t length) { idx_.write(bytes_of(length)); });
  Bytes pointer = 0;
  sequence_lengths_.replay<std::int32_t>([&](std::int32_t length) {
    idx_.write(bytes_of(pointer));
    pointer += length * size_of(type_);
  });
  idx_.write(bytes_of(std::int64_t{0}));
  document_sequences_.replay<std::int64_t>([&](std::int64_t sequences) { idx_.write(bytes_of(sequences)); });
  bin_.commit();
  idx_.commit();
}

TokenFile::TokenFile(const std::filesystem::path& prefix)
    : bin_path_(with_suffix(prefix, ".bin")), idx_path_(with_suffix(prefix, ".idx")), bin_(bin_path_), idx_(idx_path_) {
  check_index();  // reads the header a second time, but may then trust it
  type_ = static_cast<TokenType>(load<std::uint8_t>(idx_.bytes(), 17));
  num_sequences_ = load<std::int64_t>(idx_.bytes(), 18);
  num_documents_ = load<std::int64_t>(idx_.bytes(), 26) - 1;
  num_tokens_ = static_cast<Tokens>(bin_.bytes().size()) / size_of(type_);
}

void TokenFile::check_index() const {
  const std::span<const std::byte> idx = idx_.bytes();
  const Bytes idx_bytes = static_cast<Bytes>(idx.size());
  const auto refuse = [](const std::filesystem::path& file, const std::string& why) {
    throw UserError(file.string() + ": " + why);
  };
  const auto text = [](auto value) { return std::to_string(value); };

  if (idx.size() < kMagic.size() || std::memcmp(idx.data(), kMagic.data(), kMagic.size()) != 0) {
    refuse(idx_path_, "not an index of Megatron's format: it does not begin with MMIDIDX");
  }
  if (idx_bytes < kHeaderBytes) {
    refuse(idx_path_, "truncated: " + text(idx_bytes) + " bytes, the header has " + text(kHeaderBytes));
  }
  const auto version = load<std::uint64_t>(idx, 9);
  if (version != kVersion) refuse(idx_path_, "version = " + text(version) + ", only 1 is known");
  const auto code = load<std::uint8_t>(idx, 17);
  const Bytes item = size_of(static_cast<TokenType>(code));
  if (item == 0) refuse(idx_path_, "token type code = " + text(int{code}) + ", allowed are 1, 2, 3, 4, 5 and 8");
  const auto sequences = load<std::int64_t>(idx, 18);
  const auto documents = load<std::int64_t>(idx, 26);
  // The counts are compared by division first: they may be any 64 bits, and their products would overflow.
  if (sequences < 0 || sequences > idx_bytes / 12 || documents < 1 || documents > idx_bytes / 8 ||
      kHeaderBytes + 12 * sequences + 8 * documents != idx_bytes) {
    refuse(idx_path_, text(idx_bytes) + " bytes do not hold the " + text(sequences) + " sequences and " +
                          text(documents) + " document boundaries of its header: truncated or damaged");
  }

  const Bytes pointers = kHeaderBytes + 4 * sequences;
  const Bytes boundaries = pointers + 8 * sequences;
  Bytes expected = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    const auto length = load<std::int32_t>(idx, kHeaderBytes + 4 * i);
    const auto pointer = load<std::int64_t>(idx, pointers + 8 * i);
    if (length < 0) refuse(idx_path_, "sequence " + text(i) + ": length = " + text(length) + " is negative");
    if (pointer != expected) {
      refuse(idx_path_, "sequence " + text(i) + ": begins at byte " + text(pointer) +
                            ", but the lengths before it add up to " + text(expected));
    }
    expected += length * item;
  }
  if (static_cast<Bytes>(bin_.bytes().size()) != expected) {
    refuse(bin_path_, text(bin_.bytes().size()) + " bytes, but the lengths in " + idx_path_.filename().string() +
                          " add up to " + text(expected) + ": truncated, or not the file of this index");
  }
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < documents; ++i) {
    const auto boundary = load<std::int64_t>(idx, boundaries + 8 * i);
    if (boundary < last || boundary > sequences || (i == 0 && boundary != 0)) {
      refuse(idx_path_, "document boundary " + text(i) + " = " + text(boundary) + " is out of order");
    }
    last = boundary;
  }
  if (last != sequences) {
    refuse(idx_path_, "the last document ends at sequence " + text(last) + " of " + text(sequences));
  }
}

Tokens TokenFile::first_token(std::int64_t document) const {
  const Bytes boundaries = kHeaderBytes + 12 * num_sequences_;
  const auto sequence = load<std::int64_t>(idx_.bytes(), boundaries + 8 * document);
  if (sequence == num_sequences_) return num_tokens_;
  return load<std::int64_t>(idx_.bytes(), kHeaderBytes + 4 * num_sequences_ + 8 * sequence) / size_of(type_);
}

Tokens TokenFile::length(std::int64_t document) const {
  BALLAST_ASSERT(document >= 0 && document < num_documents_, "document of the file");
  return first_token(document + 1) - first_token(document);
}

namespace {

template <class T>
std::size_t copy_tokens(std::span<const std::byte> bytes, Tokens first, std::int64_t vocab_size,
                        std::span<std::int64_t> out) {
  const std::byte* from = bytes.data() + first * static_cast<Tokens>(sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T token;
    std::memcpy(&token, from + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(token);
    if (out[i] < 0 || out[i] >= vocab_size) return i;
  }
  return out.size();
}

}  // namespace

void TokenFile::read(std::int64_t document, TokenRange range, std::int64_t vocab_size,
                     std::span<std::int64_t> out) const {
  BALLAST_ASSERT(range.begin >= 0 && range.begin <= range.end && range.end <= length(document),
                 "tokens of the document");
  BALLAST_ASSERT(static_cast<Tokens>(out.size()) == range.size(), "room for the tokens asked for");
  const Tokens first = first_token(document) + range.begin;
  const std::span<const std::byte> bin = bin_.bytes();
  std::size_t good = 0;
  switch (type_) {
    case TokenType::uint8:
      good = copy_tokens<std::uint8_t>(bin, first, vocab_size, out);
      break;
    case TokenType::int8:
      good = copy_tokens<std::int8_t>(bin, first, vocab_size, out);
      break;
    case TokenType::int16:
      good = copy_tokens<std::int16_t>(bin, first, vocab_size, out);
      break;
    case TokenType::int32:
      good = copy_tokens<std::int32_t>(bin, first, vocab_size, out);
      break;
    case TokenType::int64:
      good = copy_tokens<std::int64_t>(bin, first, vocab_size, out);
      break;
    case TokenType::uint16:
      good = copy_tokens<std::uint16_t>(bin, first, vocab_size, out);
      break;
  }
  if (good != out.size()) {
    throw UserError(bin_path_.string() + ": document " + std::to_string(document) + ", position " +
                    std::to_string(range.begin + static_cast<Tokens>(good)) + ": token " + std::to_string(out[good]) +
                    " is outside the vocabulary [0, " + std::to_string(vocab_size) + ")");
  }
}

}  // namespace ballast
