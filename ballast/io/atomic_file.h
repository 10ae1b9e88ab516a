// Files appear whole or not at all: written aside in the same folder, synced, then renamed to their final name. An
// AtomicFile that is destroyed without commit() removes what it wrote.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace ballast {

class AtomicFile {
 public:
  // Opens `path` + ".partial" + process id. Throws UserError naming the path and the system's reason.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws RunError naming the path ("disk full" included).
  void write(std::string_view bytes);
  // Syncs and renames. Nothing may be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::filesystem::path aside_;
  std::FILE* file_ = nullptr;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Whole content. Throws UserError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Makes renames and new names in `folder` durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace ballast
