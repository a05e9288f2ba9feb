#include "object_storage/google_credentials.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "cadre/value.h"
#include "object_storage/environment.h"
#include "object_storage/json_fields.h"
#include "object_storage/signatures.h"
#include "storage/storage.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr const char* kScope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* kTokenService = "https://oauth2.googleapis.com/token";

// Returns the path of the credentials file; empty if there is none.
fs::path file_of_credentials() {
  if (const std::string named = environment("GOOGLE_APPLICATION_CREDENTIALS"); !named.empty()) return named;
  const std::string configuration = environment("CLOUDSDK_CONFIG");
  const fs::path folder =
      configuration.empty() ? fs::path(environment("HOME")) / ".config" / "gcloud" : fs::path(configuration);
  const fs::path file = folder / "application_default_credentials.json";
  std::error_code unreadable;
  return fs::exists(file, unreadable) ? file : fs::path();
}

std::string token_service_of(const Value& credentials) {
  const std::string service = field(credentials, "token_uri");
  return service.empty() ? kTokenService : service;
}

// https://datatracker.ietf.org/doc/html/rfc7523, signed with the account's key
AccessToken token_of_service_account(const Value& account) {
  constexpr int kSeconds = 3600;
  const std::string service = token_service_of(account);
  const std::int64_t now = std::time(nullptr);
  const std::string head = base::to_json({{"alg", "RS256"}, {"typ", "JWT"}, {"kid", field(account, "private_key_id")}});
  const std::string claims = base::to_json({{"iss", field(account, "client_email")},
                                            {"scope", kScope},
                                            {"aud", service},
                                            {"iat", now},
                                            {"exp", now + kSeconds}});
  const std::string text = base64_of_urls(head) + "." + base64_of_urls(claims);
  const std::string assertion = text + "." + base64_of_urls(rsa_sha256(field(account, "private_key"), text));
  return ask_for_token(service,
                       {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}, {"assertion", assertion}});
}

AccessToken token_of_user(const Value& user) {
  return ask_for_token(token_service_of(user), {{"grant_type", "refresh_token"},
                                                {"client_id", field(user, "client_id")},
                                                {"client_secret", field(user, "client_secret")},
                                                {"refresh_token", field(user, "refresh_token")}});
}

// https://cloud.google.com/compute/docs/access/authenticate-workloads
AccessToken token_of_machine() {
  std::string host = environment("GCE_METADATA_HOST");
  if (host.empty()) host = environment("GCE_METADATA_ROOT");
  if (host.empty()) host = "metadata.google.internal";
  const std::string url = fmt::format("http://{}/computeMetadata/v1/instance/service-accounts/default/token", host);
  return token_of(send({.url = url, .headers = {"Metadata-Flavor: Google"}}), url);
}

}  // namespace

AccessToken google_access_token() {
  const fs::path file = file_of_credentials();
  if (file.empty()) return token_of_machine();
  const Value credentials = parse_fields(base::read_file(file), file.string());
  const std::string type = field(credentials, "type");
  if (type == "service_account") return token_of_service_account(credentials);
  if (type == "authorized_user") return token_of_user(credentials);
  throw StorageFault(StorageFault::Kind::lasting,
                     fmt::format("{} has credentials of the type \"{}\", with which Cadre cannot write on a condition",
                                 file.string(), type));
}

}  // namespace cadre::storage
