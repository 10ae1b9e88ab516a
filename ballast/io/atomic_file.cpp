#include "ballast/io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "ballast/base/error.h"

namespace ballast {

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), aside_(path_.string() + ".partial" + std::to_string(::getpid())) {
  file_ = std::fopen(aside_.c_str(), "wb");
  if (file_ == nullptr) throw UserError(path_.string() + ": cannot be written: " + std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    ::unlink(aside_.c_str());
  }
}

void AtomicFile::fail(const char* what) const {
  throw RunError(path_.string() + ": " + what + ": " + std::strerror(errno));
}

void AtomicFile::write(std::string_view bytes) {
  if (bytes.empty()) return;  // its data may be null, which fwrite does not take
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("cannot be written");
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0) fail("cannot be written");
  if (::fsync(::fileno(file_)) != 0) fail("cannot be synced");
  std::FILE* file = std::exchange(file_, nullptr);
  if (std::fclose(file) != 0) {
    ::unlink(aside_.c_str());
    fail("cannot be closed");
  }
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    ::unlink(aside_.c_str());
    fail("cannot be renamed into place");
  }
  sync_folder(path_.parent_path());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

std::string read_file(const std::filesystem::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw UserError(path.string() + ": cannot be read: " + std::strerror(errno));
  std::string bytes;
  char buffer[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0) bytes.append(buffer, got);
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  std::fclose(file);
  if (failed) throw UserError(path.string() + ": cannot be read: " + std::strerror(error));
  return bytes;
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return;  // a file system that cannot open folders cannot sync them either
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace ballast
