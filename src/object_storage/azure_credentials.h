// How Azure knows who asks: a key of the storage account, a shared access signature, or an identity that gets access
// tokens, as Azure's own libraries look for them.
#pragma once

#include <string>

#include "storage/uri.h"

namespace cadre::storage {

struct AzureCredentials {
  enum class Kind {
    chain,              // environment, workload identity, program az, managed identity: the first that there is
    environment,        // AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET
    workload_identity,  // AZURE_FEDERATED_TOKEN_FILE: of Kubernetes
    cli,                // of who is logged in with the program az
    managed_identity,   // of the machine
    key,                // AZURE_STORAGE_KEY
    signature,          // AZURE_STORAGE_SAS_TOKEN
    anonymous,
  };
  Kind kind = Kind::chain;
  std::string secret = {};     // the key, in base64; or the signature, as a query without "?"
  std::string client_id = {};  // of the managed identity; empty: the machine's only one
};

// By the options of a URI, which Arrow reads too, else by the variables of the environment that the program az knows.
AzureCredentials azure_credentials(const Uri& uri, const std::string& account);

}  // namespace cadre::storage
