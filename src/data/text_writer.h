// CSV and JSON as formats of files to write.
#pragma once

#include "cadre/data/dataset.h"
#include "data/folder_writer.h"

namespace cadre::data {

FileFormat csv_format(const WriteCsvOptions& options);
FileFormat json_format(const WriteJsonOptions& options);

}  // namespace cadre::data
