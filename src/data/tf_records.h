// TensorFlow's files of records: each is its length, a checksum of that, its bytes, and a checksum of them.
#pragma once

#include <arrow/io/type_fwd.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace cadre::data {

// Returns the checksum CRC-32C of the bytes.
std::uint32_t crc32c(std::string_view bytes);

class TfRecords {
 public:
  // `doing` begins errors of the stream: "cannot read a.tfrecords".
  TfRecords(std::shared_ptr<arrow::io::InputStream> stream, std::string doing);

  // Returns the next record, valid until the next call; empty at the end of the file. Throws StorageError for a damaged
  // one.
  std::optional<std::string_view> next();
  // Returns true if the records after a damaged one can be read.
  bool can_continue() const { return can_continue_; }

 private:
  std::shared_ptr<arrow::Buffer> read(std::int64_t bytes);

  std::shared_ptr<arrow::io::InputStream> stream_;
  std::string doing_;
  std::shared_ptr<arrow::Buffer> record_;
  bool can_continue_ = true;
};

}  // namespace cadre::data
