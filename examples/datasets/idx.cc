#include "datasets/idx.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cadre/error.h"

namespace datasets {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 30;
constexpr std::uint8_t unsigned_byte_type = 0x08;
constexpr const char* advice = "; fetch or copy the file again";

// Reads plain and gzipped files alike: that is how zlib's gzread works.
class IdxFile {
 public:
  explicit IdxFile(const std::filesystem::path& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!std::filesystem::exists(path)) throw cadre::NotFound("no data file " + path.string() + "; check --data-dir");
    if (std::filesystem::is_directory(path)) fail("is a directory, not an IDX file");
    if (!file_) fail("cannot be opened; check its permissions");
    gzbuffer(file_.get(), 1 << 18);
  }

  // Reads up to `size` bytes and returns how many there were. A damaged gzip stream is an error, its end is not.
  std::size_t read(std::uint8_t* target, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const auto wanted = static_cast<unsigned>(std::min<std::size_t>(size - done, 1 << 20));
      const int count = gzread(file_.get(), target + done, wanted);
      if (count < 0) fail_gzip();
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return done;
  }

  // zlib reports a cut gzip stream, or a wrong checksum, only when it is closed or read to its very end.
  void check_end(std::size_t expected) {
    std::uint8_t extra = 0;
    if (read(&extra, 1) != 0) {
      fail("has more than the " + std::to_string(expected) + " bytes that its header announces" + advice);
    }
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code != Z_OK) fail_gzip();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw cadre::StorageError("data file " + path_.string() + " " + what);
  }

 private:
  [[noreturn]] void fail_gzip() const {
    int code = Z_OK;
    const std::string reason = gzerror(file_.get(), &code);
    fail("is a damaged or cut gzip file (" + reason + ")" + advice);
  }

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::size_t big_endian(const std::uint8_t* bytes) {
  return std::size_t{bytes[0]} << 24 | std::size_t{bytes[1]} << 16 | std::size_t{bytes[2]} << 8 | std::size_t{bytes[3]};
}

void check_magic(const IdxFile& file, const std::vector<std::uint8_t>& header, std::size_t dimension_count) {
  if (header[0] != 0 || header[1] != 0) file.fail("is not an IDX file: it does not begin with two zero bytes");
  if (header[2] != unsigned_byte_type) {
    file.fail("holds elements of IDX type " + std::to_string(header[2]) + ", expected 8 (unsigned bytes)");
  }
  if (header[3] != dimension_count) {
    file.fail("has " + std::to_string(header[3]) + " dimensions, expected " + std::to_string(dimension_count) +
              "; are images and labels mixed up?");
  }
}

std::size_t element_count(const IdxFile& file, const std::vector<std::size_t>& dimensions) {
  std::size_t count = 1;
  for (const std::size_t dimension : dimensions) {
    if (dimension == 0) file.fail("has a dimension of size 0");
    if (dimension > max_bytes / count) file.fail("announces more than 1 GiB in its header");
    count *= dimension;
  }
  return count;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, std::size_t dimension_count) {
  IdxFile file(path);
  std::vector<std::uint8_t> header(4 + 4 * dimension_count);
  const std::size_t header_bytes = file.read(header.data(), header.size());
  if (header_bytes >= 4) check_magic(file, header, dimension_count);
  if (header_bytes < header.size()) {
    file.fail("is cut: " + std::to_string(header_bytes) + " bytes, expected a header of " +
              std::to_string(header.size()) + advice);
  }
  IdxArray array;
  for (std::size_t i = 0; i < dimension_count; ++i) array.dimensions.push_back(big_endian(&header[4 + 4 * i]));
  const std::size_t expected = element_count(file, array.dimensions);
  array.bytes.resize(expected);
  const std::size_t actual = file.read(array.bytes.data(), expected);
  if (actual < expected) {
    file.fail("is cut: " + std::to_string(header.size() + actual) + " bytes, expected " +
              std::to_string(header.size() + expected) + advice);
  }
  file.check_end(header.size() + expected);
  return array;
}

}  // namespace datasets
