// Credentials for Azure: a key of the storage account, a shared access signature, or an identity that gets access
// tokens. They are searched for as Azure's own libraries do.
#pragma once

#include <string>

#include "storage/uri.h"

namespace cadre::storage {

struct AzureCredentials {
  enum class Kind {
    chain,              // the first available of environment, workload identity, program az, managed identity
    environment,        // AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET
    workload_identity,  // AZURE_FEDERATED_TOKEN_FILE, set by Kubernetes
    cli,                // login of the program az
    managed_identity,   // of the machine
    key,                // AZURE_STORAGE_KEY
    signature,          // AZURE_STORAGE_SAS_TOKEN
    anonymous,
  };
  Kind kind = Kind::chain;
  std::string secret = {};     // the key, in base64; or the signature, as a query without "?"
  std::string client_id = {};  // of the managed identity; empty: the machine's only one
};

// Returns the credentials from the options of a URI, which Arrow reads too, else from the environment variables that
// the program az uses.
AzureCredentials azure_credentials(const Uri& uri, const std::string& account);

}  // namespace cadre::storage
