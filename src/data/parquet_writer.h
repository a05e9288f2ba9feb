// Parquet files in a folder, of this machine or of a storage.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"
#include "data/output_folder.h"
#include "data/plan.h"

namespace cadre::data {

class ParquetWriter {
 public:
  // Creates the folder. Throws InvalidArgument if it contains Parquet files, or if the compression does not exist.
  ParquetWriter(const std::string& folder, const WriteParquetOptions& options);
  // Removes the written files unless finish() has succeeded.
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  void write(const Block& block);
  // Completes the files and returns them. If nothing was written, writes one without rows of this schema, unless null.
  std::vector<std::filesystem::path> finish(const std::shared_ptr<arrow::Schema>& schema);

 private:
  struct File;
  void open(const std::shared_ptr<arrow::Schema>& schema);
  void close();
  void flush();

  OutputFolder folder_;
  WriteParquetOptions options_;
  std::vector<std::string> files_;  // their names
  std::unique_ptr<File> file_;      // being written; null: none
};

}  // namespace cadre::data
