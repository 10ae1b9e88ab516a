#include "ballast/io/hugging_face_tokenizer.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "ballast/base/error.h"

extern char** environ;

namespace ballast {

namespace {

// A child process with one socket for its standard input and output. Frames are little-endian, as tokenize_stream.py
// has them. A socket and not two pipes: a write to a dead child is then an error and not a signal.
class Child {
 public:
  Child(std::string name, const std::vector<std::string>& command) : name_(std::move(name)) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw RunError(name_ + ": no socket: " + std::strerror(errno));
    }
    socket_ = ends[0];
    errors_ = std::tmpfile();  // a file never fills up and blocks the child, as a pipe that nobody reads would
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (errors_ != nullptr) ::posix_spawn_file_actions_adddup2(&actions, ::fileno(errors_), STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int error = ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
      process_ = -1;
      close();
      if (errors_ != nullptr) std::fclose(errors_);
      throw UserError("--python " + command[0] + ": cannot be run: " + std::strerror(error));
    }
  }
  ~Child() {
    close();
    if (errors_ != nullptr) std::fclose(errors_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Both return false where the child is gone.
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool read(void* into, std::size_t size) {
    auto* at = static_cast<char*>(into);
    while (size > 0) {
      const ssize_t got = ::recv(socket_, at, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }

  // Ends the child and gives the last line it wrote to stderr, or how it ended.
  std::string last_words() {
    const int status = close();
    std::string words;
    if (errors_ != nullptr) {
      std::rewind(errors_);
      std::array<char, 4096> line{};
      while (std::fgets(line.data(), line.size(), errors_) != nullptr) {
        std::string_view text(line.data());
        while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
        if (!text.empty()) words = text;
      }
    }
    if (!words.empty()) return words;
    if (WIFSIGNALED(status)) return "its process was killed by signal " + std::to_string(WTERMSIG(status));
    return "its process ended with exit code " + std::to_string(WEXITSTATUS(status));
  }
  const std::string& name() const { return name_; }

 private:
  // Closing the socket is the child's sign to end.
  int close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    int status = 0;
    if (process_ > 0) {
      while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
      process_ = -1;
    }
    return status;
  }

  std::string name_;
  int socket_ = -1;
  std::FILE* errors_ = nullptr;
  pid_t process_ = -1;
};

void put(std::string& frame, std::uint32_t value) { frame.append(reinterpret_cast<const char*>(&value), sizeof value); }

class HuggingFaceTokenizer : public Tokenizer {
 public:
  HuggingFaceTokenizer(const std::filesystem::path& file, const std::string& python, const std::string& eod_token)
      : child_(file.string(),
               {python, BALLAST_SOURCE_DIR "/python/ballast/tokenize_stream.py", file.string(), eod_token}) {
    if (!child_.read(greeting_.data(), sizeof greeting_)) throw UserError(child_.name() + ": " + child_.last_words());
  }

  std::string name() const override { return child_.name(); }
  std::int64_t vocab_size() const override { return greeting_[0]; }
  std::int64_t eod() const override { return greeting_[1]; }

  std::vector<std::vector<std::uint32_t>> encode(std::span<const std::string> texts) override {
    std::string frame;
    put(frame, static_cast<std::uint32_t>(texts.size()));
    for (const std::string& text : texts) {
      if (text.size() > UINT32_MAX) throw UserError(name() + ": a text of more than 4 GiB cannot be tokenized");
      put(frame, static_cast<std::uint32_t>(text.size()));
      frame += text;
    }
    // The child reads the whole frame before it answers, so neither waits for the other.
    if (!child_.write(frame)) fail();
    std::vector<std::vector<std::uint32_t>> tokens(texts.size());
    for (std::vector<std::uint32_t>& ids : tokens) {
      std::uint32_t count = 0;
      if (!child_.read(&count, sizeof count)) fail();
      ids.resize(count);
      if (!child_.read(ids.data(), ids.size() * sizeof(std::uint32_t))) fail();
    }
    return tokens;
  }

 private:
  [[noreturn]] void fail() { throw RunError(name() + ": the tokenizer stopped: " + child_.last_words()); }

  Child child_;
  std::array<std::int64_t, 2> greeting_{};  // vocabulary, end-of-document token or -1
};

}  // namespace

std::string default_python() { return BALLAST_SOURCE_DIR "/.venv/bin/python"; }

std::unique_ptr<Tokenizer> hugging_face_tokenizer(const std::filesystem::path& file, const std::string& python,
                                                  const std::string& eod_token) {
  return std::make_unique<HuggingFaceTokenizer>(file, python, eod_token);
}

}  // namespace ballast
