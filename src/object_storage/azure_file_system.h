// Arrow's file system for Azure. Also for src/data, which reads files through it.
#pragma once

#include <arrow/util/config.h>

#ifdef ARROW_AZURE
#include <arrow/filesystem/azurefs.h>
#include <arrow/result.h>

#include <memory>
#include <string>

#include "storage/uri.h"

namespace cadre::storage {

// With the credentials that azure_credentials() finds. `root` becomes the path in it that the URI names. Azure's
// library may throw, now and whenever the file system is used.
arrow::Result<std::shared_ptr<arrow::fs::AzureFileSystem>> azure_file_system(const Uri& uri, std::string* root);

}  // namespace cadre::storage
#endif
