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
  // Makes the folder. Throws InvalidArgument where it has Parquet files, or there is no such compression.
  ParquetWriter(const std::string& folder, const WriteParquetOptions& options);
  // Without finish(), or where it has thrown, removes what was written.
  ~ParquetWriter();
  ParquetWriter(const ParquetWriter&) = delete;
  ParquetWriter& operator=(const ParquetWriter&) = delete;

  void write(const Block& block);
  // The files. Where nothing was written, one without rows of this schema, if it is not null.
  std::vector<std::filesystem::path> finish(const std::shared_ptr<arrow::Schema>& schema);

 private:
  struct File;
  void open(const std::shared_ptr<arrow::Schema>& schema);
  void close();
  void flush();

  OutputFolder folder_;
  WriteParquetOptions options_;
  std::vector<std::string> files_;  // their names
  std::unique_ptr<File> file_;      // that is being written; null: none
};

}  // namespace cadre::data
