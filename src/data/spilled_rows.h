// Rows on disk that do not fit the memory.
#pragma once

#include <arrow/io/type_fwd.h>
#include <arrow/ipc/type_fwd.h>

#include <memory>
#include <string>

#include "data/stream.h"

namespace cadre::data {

// Blocks of one schema in a file, which is written once and read once. One thread at a time.
class SpilledRows {
 public:
  // Creates the file with the first block. `task`, "cannot keep rows of sort on disk", begins the messages of errors,
  // and must live as long as the rows.
  SpilledRows(std::string path, const char* task);

  void add(const Block& block);
  // Returns the rows, of which there are some; nothing can be added any more. The file is removed when the first is
  // read.
  std::unique_ptr<BlockStream> take();

 private:
  class Reader;

  std::string path_;
  const char* task_;
  std::shared_ptr<arrow::io::FileOutputStream> file_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer_;
};

}  // namespace cadre::data
