// Arrow's file system for Azure. Also used by src/data to read files.
#pragma once

#include <arrow/util/config.h>

#ifdef ARROW_AZURE
#include <arrow/filesystem/azurefs.h>
#include <arrow/result.h>

#include <memory>
#include <string>

#include "storage/uri.h"

namespace cadre::storage {

// Opens the file system with the credentials from azure_credentials(). Sets `root` to the URI's path in it. Azure's
// library may throw, here and whenever the file system is used.
arrow::Result<std::shared_ptr<arrow::fs::AzureFileSystem>> azure_file_system(const Uri& uri, std::string* root);

}  // namespace cadre::storage
#endif
