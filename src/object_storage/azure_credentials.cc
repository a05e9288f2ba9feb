#include "object_storage/azure_credentials.h"

#include <string_view>
#include <utility>

#include "object_storage/environment.h"

namespace cadre::storage {

AzureCredentials azure_credentials(const Uri& uri, const std::string& account) {
  constexpr std::pair<std::string_view, AzureCredentials::Kind> kinds[] = {
      {"anonymous", AzureCredentials::Kind::anonymous},
      {"cli", AzureCredentials::Kind::cli},
      {"environment", AzureCredentials::Kind::environment},
      {"workload_identity", AzureCredentials::Kind::workload_identity}};
  const std::string asked = option(uri, "credential_kind");
  for (const auto& [name, kind] : kinds) {
    if (asked == name) return {.kind = kind};
  }
  if (const std::string client = option(uri, "client_id"); !client.empty())
    return {.kind = AzureCredentials::Kind::managed_identity, .client_id = client};
  const std::string meant = environment("AZURE_STORAGE_ACCOUNT");
  if (!meant.empty() && meant != account) return {};
  if (std::string key = environment("AZURE_STORAGE_KEY"); !key.empty())
    return {.kind = AzureCredentials::Kind::key, .secret = key};
  if (std::string signature = environment("AZURE_STORAGE_SAS_TOKEN"); !signature.empty())
    return {.kind = AzureCredentials::Kind::signature, .secret = signature.substr(signature.starts_with('?') ? 1 : 0)};
  return {};
}

}  // namespace cadre::storage
