// Megatron-LM's indexed dataset: PREFIX.bin holds tokens one after the other, PREFIX.idx says where documents begin.
// Byte layout: docs/formats/corpus.md. A document may be made of several sequences (Megatron's sentences); here only
// the document counts, because its sequences lie side by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "ballast/base/token_range.h"
#include "ballast/base/units.h"
#include "ballast/io/atomic_file.h"
#include "ballast/io/mapped_file.h"
#include "ballast/io/spool.h"

namespace ballast {

// Megatron's code of the type of one token.
enum class TokenType : std::uint8_t { uint8 = 1, int8 = 2, int16 = 3, int32 = 4, int64 = 5, uint16 = 8 };

Bytes size_of(TokenType type);

// The type Megatron's own tools choose: uint16 below 65,500 tokens of vocabulary, else int32.
TokenType token_type_for(std::int64_t vocab_size);

// Writes the pair in constant memory, aside; commit() puts both under their final names.
class TokenFileWriter {
 public:
  // REQUIRES: type is uint16 or int32. Throws UserError where the folder cannot be written.
  TokenFileWriter(const std::filesystem::path& prefix, TokenType type);

  // Adds to the document being written. Throws RunError (disk full).
  // REQUIRES: every token fits the type.
  void append(std::span<const std::uint32_t> tokens);
  void end_document();

  std::int64_t num_documents() const { return num_documents_; }
  Tokens num_tokens() const { return num_tokens_; }

  // REQUIRES: every document ended. The .bin is renamed first: an .idx never points at a .bin that is not there.
  void commit();

 private:
  void end_sequence();

  TokenType type_;
  AtomicFile bin_;
  AtomicFile idx_;
  Spool sequence_lengths_;    // int32
  Spool document_sequences_;  // int64: sequences up to and with each document
  std::int64_t num_sequences_ = 0;
  std::int64_t num_documents_ = 0;
  Tokens num_tokens_ = 0;
  Tokens open_tokens_ = 0;  // tokens of the sequence being written
};

// Reads a pair by mapping it. Construction reads the whole .idx and checks it, so every later call is within bounds.
class TokenFile {
 public:
  // Throws UserError naming the file and what is wrong with it.
  explicit TokenFile(const std::filesystem::path& prefix);

  std::int64_t num_documents() const { return num_documents_; }
  Tokens num_tokens() const { return num_tokens_; }
  TokenType type() const { return type_; }

  // REQUIRES: 0 <= document < num_documents().
  Tokens length(std::int64_t document) const;

  // Copies tokens `range` of the document, counted from its first token, to `out`.
  // REQUIRES: 0 <= range.begin <= range.end <= length(document); out.size() == range.size().
  // Throws UserError naming document and position at a token outside [0, vocab_size).
  void read(std::int64_t document, TokenRange range, std::int64_t vocab_size, std::span<std::int64_t> out) const;

 private:
  Tokens first_token(std::int64_t document) const;
  void check_index() const;

  std::filesystem::path bin_path_;
  std::filesystem::path idx_path_;
  MappedFile bin_;
  MappedFile idx_;
  TokenType type_ = TokenType::uint16;
  std::int64_t num_sequences_ = 0;
  std::int64_t num_documents_ = 0;
  Tokens num_tokens_ = 0;
};

}  // namespace ballast
