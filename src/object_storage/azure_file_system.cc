#include "object_storage/azure_file_system.h"

#ifdef ARROW_AZURE
#include "object_storage/azure_credentials.h"

namespace cadre::storage {

arrow::Result<std::shared_ptr<arrow::fs::AzureFileSystem>> azure_file_system(const Uri& uri, std::string* root) {
  ARROW_ASSIGN_OR_RAISE(arrow::fs::AzureOptions options, arrow::fs::AzureOptions::FromUri(to_string(uri), root));
  options.background_writes = false;  // Arrow's threads do not catch exceptions of Azure's library
  const AzureCredentials credentials = azure_credentials(uri, options.account_name);
  if (credentials.kind == AzureCredentials::Kind::key)
    ARROW_RETURN_NOT_OK(options.ConfigureAccountKeyCredential(credentials.secret));
  if (credentials.kind == AzureCredentials::Kind::signature)
    ARROW_RETURN_NOT_OK(options.ConfigureSASCredential("?" + credentials.secret));
  return arrow::fs::AzureFileSystem::Make(options);
}

}  // namespace cadre::storage
#endif
