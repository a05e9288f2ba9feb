#include "datasets/idx.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "cadre/error.h"

namespace datasets {
namespace {

constexpr std::size_t max_elements = std::size_t{1} << 30;
constexpr std::size_t max_header = 4 + 4 * 255;
constexpr std::uint8_t unsigned_byte_type = 0x08;
constexpr const char* advice = "; fetch or copy the file again";

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw cadre::StorageError("data file " + path.string() + " " + what);
}

// A file's bytes, unpacked.
struct Content {
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const void> memory;
};

class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ >= 0) return;
    const int error = errno;
    if (error == ENOENT) throw cadre::NotFound("no data file " + path.string() + "; check --data-dir");
    fail(path, std::string("cannot be opened: ") + std::strerror(error));
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(fd_); }

  int get() const { return fd_; }

 private:
  int fd_;
};

Content map_file(const std::filesystem::path& path, int fd, std::size_t size) {
  if (size == 0) return {};
  // Private: even an accidental write into the array does not reach the file.
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) fail(path, std::string("cannot be mapped: ") + std::strerror(errno));
  std::shared_ptr<void> memory(address, [size](void* mapped) { ::munmap(mapped, size); });
  return {{static_cast<const std::uint8_t*>(address), size}, std::move(memory)};
}

Content unpack_file(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail(path, "cannot be opened");
  constexpr std::size_t chunk = 1 << 20;
  auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  int code = Z_OK;
  for (;;) {
    const std::size_t begin = bytes->size();
    if (begin > max_elements + max_header) fail(path, "has more than 1 GiB when it is unpacked");
    bytes->resize(begin + chunk);
    const int count = gzread(file.get(), bytes->data() + begin, chunk);
    bytes->resize(begin + static_cast<std::size_t>(count < 0 ? 0 : count));
    // A truncated stream is detected only here: gzread returns the bytes that it could read.
    const std::string reason = gzerror(file.get(), &code);
    if (code != Z_OK) fail(path, "is a damaged or cut gzip file (" + reason + ")" + advice);
    if (count == 0) break;
  }
  const std::span<const std::uint8_t> view = *bytes;
  return {view, std::move(bytes)};
}

Content open_content(const std::filesystem::path& path) {
  const OpenFile file(path);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) fail(path, "is no regular file");
  std::uint8_t magic[2] = {};
  const bool is_gzipped = ::pread(file.get(), magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  return is_gzipped ? unpack_file(path) : map_file(path, file.get(), static_cast<std::size_t>(status.st_size));
}

std::size_t big_endian(const std::uint8_t* bytes) {
  return std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | std::size_t{bytes[3]};
}

void check_magic(const std::filesystem::path& path, std::span<const std::uint8_t> bytes, std::size_t dimension_count) {
  if (bytes[0] != 0 || bytes[1] != 0) fail(path, "is not an IDX file: it does not begin with two zero bytes");
  if (bytes[2] != unsigned_byte_type) {
    fail(path, "holds elements of IDX type " + std::to_string(bytes[2]) + ", expected 8 (unsigned bytes)");
  }
  if (bytes[3] != dimension_count) {
    fail(path, "has " + std::to_string(bytes[3]) + " dimensions, expected " + std::to_string(dimension_count) +
                   "; are images and labels mixed up?");
  }
}

std::size_t element_count(const std::filesystem::path& path, const std::vector<std::size_t>& dimensions) {
  std::size_t count = 1;
  for (const std::size_t dimension : dimensions) {
    if (dimension == 0) fail(path, "has a dimension of size 0");
    if (dimension > max_elements / count) fail(path, "announces more than 1 GiB in its header");
    count *= dimension;
  }
  return count;
}

void check_size(const std::filesystem::path& path, std::size_t actual, std::size_t expected) {
  if (actual == expected) return;
  fail(path, std::string(actual < expected ? "is cut: " : "is too long: ") + std::to_string(actual) +
                 " bytes, expected " + std::to_string(expected) + advice);
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, std::size_t dimension_count) {
  Content content = open_content(path);
  const std::size_t header = 4 + 4 * dimension_count;
  if (content.bytes.size() >= 4) check_magic(path, content.bytes, dimension_count);
  if (content.bytes.size() < header) check_size(path, content.bytes.size(), header);
  IdxArray array;
  for (std::size_t i = 0; i < dimension_count; ++i) array.dimensions.push_back(big_endian(&content.bytes[4 + 4 * i]));
  check_size(path, content.bytes.size(), header + element_count(path, array.dimensions));
  array.elements = content.bytes.subspan(header);
  array.memory = std::move(content.memory);
  return array;
}

}  // namespace datasets
