// Access tokens for Azure's storage, as Azure's own libraries get them.
#pragma once

#include "object_storage/access_token.h"
#include "object_storage/azure_credentials.h"

namespace cadre::storage {

// Gets a token for credentials of a kind that uses tokens. Throws StorageFault if it cannot get one.
AccessToken azure_access_token(const AzureCredentials& credentials);

}  // namespace cadre::storage
