// Conditional requests of Azure Blob Storage: If-Match and If-None-Match, with the ETag of a blob as its version.
// https://learn.microsoft.com/en-us/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
#pragma once

#include <memory>
#include <string>

#include "object_storage/azure_credentials.h"
#include "object_storage/object_protocol.h"

namespace cadre::storage {

// Makes the protocol. `account_url` is the base URL of containers: "https://account.blob.core.windows.net/"; `root` is
// "container/folder".
std::unique_ptr<ObjectProtocol> azure_protocol(const std::string& account, const std::string& account_url,
                                               const std::string& root, AzureCredentials credentials);

}  // namespace cadre::storage
