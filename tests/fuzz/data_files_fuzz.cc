// Images, lines, arrays of numpy and archives of them, TFRecords and tar archives of any bytes are read or refused.
// With damaged rows left out, as many rows are read as are counted, whichever columns are selected.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "cadre/data.h"
#include "cadre/error.h"
#include "data/tf_records.h"
#include "fuzz/require.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;

namespace {

data::Dataset read(int format, const std::string& file, data::OnError on_error) {
  switch (format) {
    case 0:
      return data::read_images(file, {.on_error = on_error});
    case 1:
      return data::read_images(file, {.size = {5, 3}, .mode = data::ImageMode::rgb, .on_error = on_error});
    case 2:
      return data::read_text(file);
    case 3:
    case 7:
      return data::read_numpy(file, {.on_error = on_error});
    case 4:
      return data::read_tfrecords(file, {.on_error = on_error});
    default:
      return data::read_webdataset(file, {.on_error = on_error});
  }
}

void check(const data::Dataset& rows) {
  try {
    const std::int64_t count = std::ssize(rows.take_all());
    require(rows.count() == count, "as many rows are read as are counted");
    require(std::ssize(rows.select_columns({}).take_all()) == count, "rows do not need their columns");
  } catch (const InvalidArgument&) {
  } catch (const StorageError&) {
  }
}

// Returns the bytes as a record, whose checksums the fuzzer cannot guess.
std::string as_record(const std::string& content) {
  const auto bytes_of = [](auto number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  };
  const auto masked = [&](const std::string& bytes) {
    const std::uint32_t crc = data::crc32c(bytes);
    return bytes_of(static_cast<std::uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8));
  };
  const std::string length = bytes_of(static_cast<std::uint64_t>(content.size()));
  return length + masked(length) + content + masked(content);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const test_support::TemporaryDirectory directory;
  if (size == 0) return 0;
  const int format = bytes[0] == 'z' ? 7 : bytes[0] % 7;
  std::string content(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (format == 6) content = as_record(content);
  const std::string file = directory / (format == 7 ? "file.npz" : "file");
  test_support::write_bytes(file, content);
  for (const data::OnError on_error : {data::OnError::fail, data::OnError::skip})
    check(read(format == 6 ? 4 : format, file, on_error)
              .with_options({.num_threads = 1, .function_place = data::FunctionPlace::threads}));
  return 0;
}
