// Files of rows in a folder, of this machine or of a storage.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"
#include "data/output_folder.h"
#include "data/plan.h"

namespace cadre::data {

// Writes the rows of one file. Throws the errors of check().
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual void write(const Block& block) = 0;
  virtual void close() = 0;  // completes the content; does not close the stream
};

struct FileFormat {
  std::string method;  // for messages: "write_parquet"
  std::string name;    // for messages: "Parquet"
  std::string ending;  // of file names: ".parquet"
  std::int64_t max_rows_per_file = 1;
  bool needs_columns = true;  // rows without columns cannot be written
  // Throws InvalidArgument if the format does not have a type; empty: it has all.
  std::function<void(const arrow::Schema& schema)> require_types = {};
  // Opens a file; `doing` begins the messages of errors.
  std::function<std::unique_ptr<FileWriter>(std::shared_ptr<arrow::io::OutputStream> stream,
                                            const std::shared_ptr<arrow::Schema>& schema, const std::string& doing)>
      open;
};

class FolderWriter {
 public:
  // Creates the folder. `schema` has the columns of the rows to come; null: unknown. Throws InvalidArgument if the
  // folder contains files of that format, and for types that the format does not have.
  FolderWriter(const std::string& folder, FileFormat format, const std::shared_ptr<arrow::Schema>& schema);
  // Removes the written files unless finish() has succeeded.
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  void write(const Block& block);
  // Completes the files and returns them. If nothing was written, writes one without rows of this schema, unless null.
  std::vector<std::filesystem::path> finish(const std::shared_ptr<arrow::Schema>& schema);

 private:
  struct File;
  void open(const std::shared_ptr<arrow::Schema>& schema);
  void close();
  void flush();

  FileFormat format_;
  OutputFolder folder_;
  std::vector<std::string> files_;  // their names
  std::unique_ptr<File> file_;      // being written; null: none
};

}  // namespace cadre::data
