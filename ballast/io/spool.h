// Values appended now and read back in order later, through an unnamed file on the disk of `folder`, so that memory
// stays constant however many there are. Nothing of it is left behind, even after a crash.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <type_traits>

namespace ballast {

class Spool {
 public:
  // Throws UserError naming the folder where no file can be made in it.
  explicit Spool(std::filesystem::path folder);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  template <class T>
  void append(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append_bytes(&value, sizeof value);
  }

  // Calls `visit` with each value in the order of appending. REQUIRES: all values appended were of type T.
  template <class T>
  void replay(const std::function<void(T)>& visit) {
    rewind();
    T value;
    while (read_bytes(&value, sizeof value)) visit(value);
  }

 private:
  void append_bytes(const void* bytes, std::size_t size);  // throws RunError (disk full)
  void rewind();
  bool read_bytes(void* bytes, std::size_t size);
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path folder_;
  std::FILE* file_ = nullptr;
};

}  // namespace ballast
