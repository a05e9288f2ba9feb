#include "dashboard/token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/file_descriptor.h"
#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::dashboard {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kShortest = 32;
constexpr std::size_t kLongest = 256;

bool is_token(const std::string& text) {
  return text.size() >= kShortest && text.size() <= kLongest &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

std::string read_token(const base::FileDescriptor& opened, const fs::path& file) {
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) base::throw_storage_error("read", file);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077U) != 0)
    throw InvalidArgument(fmt::format(
        "{} is not safe for a token: it must be a file of yours that nobody else may read. Run `chmod 600 {}`, "
        "or name another file, which is then made",
        file.string(), file.string()));
  std::array<char, kLongest + 2> bytes{};
  const auto size = ::read(opened.get(), bytes.data(), bytes.size());
  if (size < 0) base::throw_storage_error("read", file);
  std::string text(bytes.data(), static_cast<std::size_t>(size));
  if (text.ends_with('\n')) text.pop_back();
  if (!is_token(text))
    throw InvalidArgument(
        fmt::format("{} holds no token, which has {} to {} letters, digits, - and _. Remove it, and a "
                    "new one is made",
                    file.string(), kShortest, kLongest));
  return text;
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw EngineError("the operating system has no random numbers: " + base::last_system_error());
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string token_of_file(const fs::path& file) {
  base::FileDescriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made) {
    const std::string token = random_token();
    const std::string line = token + "\n";
    if (::write(made.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      const int reason = errno;
      ::unlink(file.c_str());
      errno = reason;
      base::throw_storage_error("write", file);
    }
    return token;
  }
  if (errno != EEXIST) base::throw_storage_error("make", file);
  const base::FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened) base::throw_storage_error("read", file);
  return read_token(opened, file);
}

}  // namespace cadre::dashboard
