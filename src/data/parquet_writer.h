// Parquet as a format of files to write.
#pragma once

#include "cadre/data/dataset.h"
#include "data/folder_writer.h"

namespace cadre::data {

// Throws InvalidArgument if the compression does not exist.
FileFormat parquet_format(const WriteParquetOptions& options);

}  // namespace cadre::data
