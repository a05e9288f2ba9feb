// Tar archives, read from their beginning: of POSIX (ustar and pax) and of GNU tar.
#pragma once

#include <arrow/io/type_fwd.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace cadre::data {

class TarReader {
 public:
  // `doing` begins errors of the stream: "cannot read a.tar".
  TarReader(std::shared_ptr<arrow::io::InputStream> stream, std::string doing);

  // Returns the name of the next plain file; empty at the end of the archive. Other members are left out. Throws
  // StorageError for an archive that ends early or is damaged; it cannot be continued then.
  std::optional<std::string> next();
  // Returns the content of that file; called once, or not at all. Throws StorageError for more than 2 GiB.
  std::shared_ptr<arrow::Buffer> content();

 private:
  struct Header;
  std::optional<Header> read_header();
  std::shared_ptr<arrow::Buffer> read(std::int64_t bytes);
  // `place`: of what is read, "in" the latest file or "after" it.
  std::shared_ptr<arrow::Buffer> read_member(std::int64_t bytes, const char* place);
  std::string read_text(std::int64_t bytes);
  void skip_member();

  std::shared_ptr<arrow::io::InputStream> stream_;
  std::string doing_;
  std::string name_;          // of the latest file
  std::int64_t left_ = 0;     // bytes of the current member
  std::int64_t padding_ = 0;  // after it
};

}  // namespace cadre::data
