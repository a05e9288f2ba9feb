// Parquet files in a folder.
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "cadre/data/dataset.h"
#include "data/plan.h"

namespace cadre::data {

class ParquetWriter {
 public:
  // Makes the folder. Throws InvalidArgument where it has Parquet files, or there is no such compression.
  ParquetWriter(std::filesystem::path folder, const WriteParquetOptions& options);
  // Without finish(), removes what was written.
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

  std::filesystem::path folder_;
  WriteParquetOptions options_;
  std::vector<std::filesystem::path> files_;
  std::unique_ptr<File> file_;  // that is being written; null: none
};

}  // namespace cadre::data
