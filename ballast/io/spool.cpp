#include "ballast/io/spool.h"

#include <stdlib.h>  // mkstemp is POSIX, not in <cstdlib>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "ballast/base/error.h"

namespace ballast {

Spool::Spool(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::string name = (folder_ / ".spoolXXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) throw UserError(folder_.string() + ": cannot be written: " + std::strerror(errno));
  ::unlink(name.c_str());
  file_ = ::fdopen(descriptor, "w+b");
  if (file_ == nullptr) fail("cannot be written");
}

Spool::~Spool() {
  if (file_ != nullptr) std::fclose(file_);
}

void Spool::fail(const char* what) const {
  throw RunError(folder_.string() + ": a temporary file " + what + ": " + std::strerror(errno));
}

void Spool::append_bytes(const void* bytes, std::size_t size) {
  if (std::fwrite(bytes, 1, size, file_) != size) fail("cannot be written");
}

void Spool::rewind() {
  if (std::fflush(file_) != 0 || std::fseek(file_, 0, SEEK_SET) != 0) fail("cannot be written");
}

bool Spool::read_bytes(void* bytes, std::size_t size) {
  const std::size_t got = std::fread(bytes, 1, size, file_);
  if (got != size && std::ferror(file_) != 0) fail("cannot be read");
  return got == size;
}

}  // namespace ballast
