#include "object_storage/azure_tokens.h"

#include <fmt/format.h>
#include <stdio.h>

#include <charconv>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "base/file.h"
#include "base/percent_encoding.h"
#include "object_storage/environment.h"
#include "object_storage/json_fields.h"
#include "storage/storage.h"

namespace cadre::storage {
namespace {

using Kind = AzureCredentials::Kind;

constexpr const char* kResource = "https://storage.azure.com";

bool has(std::initializer_list<const char*> variables) {
  for (const char* name : variables) {
    if (environment(name).empty()) return false;
  }
  return true;
}

bool has_environment() { return has({"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"}); }
bool has_workload_identity() { return has({"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE"}); }

// https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow
AccessToken token_of_tenant(std::vector<std::pair<std::string, std::string>> proof) {
  std::string authority = environment("AZURE_AUTHORITY_HOST");
  if (authority.empty()) authority = "https://login.microsoftonline.com";
  while (authority.ends_with('/')) authority.pop_back();
  proof.insert(proof.end(), {{"grant_type", "client_credentials"},
                             {"client_id", environment("AZURE_CLIENT_ID")},
                             {"scope", std::string(kResource) + "/.default"}});
  return ask_for_token(fmt::format("{}/{}/oauth2/v2.0/token", authority, environment("AZURE_TENANT_ID")), proof);
}

AccessToken token_of_environment() {
  if (!has_environment())
    throw StorageFault(StorageFault::Kind::denied,
                       "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET are not all set in the environment");
  return token_of_tenant({{"client_secret", environment("AZURE_CLIENT_SECRET")}});
}

AccessToken token_of_workload_identity() {
  if (!has_workload_identity())
    throw StorageFault(
        StorageFault::Kind::denied,
        "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE are not all set in the environment");
  return token_of_tenant({{"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
                          {"client_assertion", base::read_file(environment("AZURE_FEDERATED_TOKEN_FILE"))}});
}

AccessToken token_of_cli() {
  struct Close {
    void operator()(FILE* pipe) const { ::pclose(pipe); }
  };
  const std::string command =
      fmt::format("az account get-access-token --resource {} --output json 2>/dev/null </dev/null", kResource);
  std::string answer;
  if (const std::unique_ptr<FILE, Close> pipe(::popen(command.c_str(), "re")); pipe != nullptr) {
    char bytes[4096];
    while (const std::size_t size = ::fread(bytes, 1, sizeof bytes, pipe.get())) answer.append(bytes, size);
  }
  if (answer.empty())
    throw StorageFault(StorageFault::Kind::denied, "the program az gives no access token: log in with \"az login\"");
  const Value fields = parse_fields(answer, "the answer of the program az");
  const std::string expires = field(fields, "expires_on");  // seconds since 1970
  AccessToken token{.text = field(fields, "accessToken"), .expires = expiry_unless_said()};
  std::int64_t seconds = 0;
  if (std::from_chars(expires.data(), expires.data() + expires.size(), seconds).ec ==
      std::errc())  // missing in older versions
    token.expires = std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
  return token;
}

// https://learn.microsoft.com/en-us/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
AccessToken token_of_machine(const std::string& client_id) {
  const std::string resource = "resource=" + base::percent_encoded(kResource) +
                               (client_id.empty() ? "" : "&client_id=" + base::percent_encoded(client_id));
  HttpRequest request;
  if (const std::string endpoint = environment("IDENTITY_ENDPOINT"); !endpoint.empty()) {  // in an app service
    request.url = endpoint + "?api-version=2019-08-01&" + resource;
    request.headers = {"X-IDENTITY-HEADER: " + environment("IDENTITY_HEADER")};
  } else {
    std::string authority = environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    if (authority.empty()) authority = "http://169.254.169.254";
    request.url = authority + "/metadata/identity/oauth2/token?api-version=2018-02-01&" + resource;
    request.headers = {"Metadata: true"};
  }
  return token_of(send(request), request.url);
}

AccessToken token_of_chain(const std::string& client_id) {
  if (has_environment()) return token_of_environment();
  if (has_workload_identity()) return token_of_workload_identity();
  try {
    return token_of_cli();
  } catch (const StorageFault&) {
    return token_of_machine(client_id);
  }
}

}  // namespace

AccessToken azure_access_token(const AzureCredentials& credentials) {
  switch (credentials.kind) {
    case Kind::environment:
      return token_of_environment();
    case Kind::workload_identity:
      return token_of_workload_identity();
    case Kind::cli:
      return token_of_cli();
    case Kind::managed_identity:
      return token_of_machine(credentials.client_id);
    case Kind::chain:
      return token_of_chain(credentials.client_id);
    case Kind::key:
    case Kind::signature:
    case Kind::anonymous:
      break;
  }
  throw std::logic_error("credentials of this kind have no tokens");
}

}  // namespace cadre::storage
