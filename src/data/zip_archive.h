// Files in a zip archive, as numpy's .npz are.
#pragma once

#include <arrow/io/type_fwd.h>
#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cadre::data {

// A file in an archive.
struct ZipEntry {
  std::string name = {};
  std::int64_t size = 0;          // bytes of its content
  std::int64_t stored_size = 0;   // bytes that it takes in the archive
  std::int64_t header_begin = 0;  // of its header in the archive
  std::uint32_t checksum = 0;     // CRC-32 of the content
  bool is_compressed = false;     // by Deflate
};

// Returns the files of an archive of `bytes` bytes, in the order of its directory; archives of more than 4 GiB (zip64)
// are read, too. Throws StorageError that says what is wrong with the archive: it ends early, is damaged, is encrypted,
// is compressed in another way, or has more than 65,536 files.
std::vector<ZipEntry> read_zip_entries(arrow::io::RandomAccessFile& file, std::int64_t bytes);
// Returns the first bytes of a file's content, fewer if it is shorter.
std::string read_zip_beginning(arrow::io::RandomAccessFile& file, const ZipEntry& entry, std::int64_t most);
// Returns a file's content. Throws StorageError if it has another size or checksum than the directory says.
std::shared_ptr<arrow::Buffer> read_zip_content(arrow::io::RandomAccessFile& file, const ZipEntry& entry,
                                                arrow::MemoryPool* pool);

}  // namespace cadre::data
