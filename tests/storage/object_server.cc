#include "object_server.h"

#include <stdlib.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace cadre::storage_tests {

namespace {

// The public key of Azurite's account: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
constexpr const char* kAzuriteKey =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const char* script_of(Service service) {
  switch (service) {
    case Service::s3:
      return "object_server.py";
    case Service::google:
      return "google_server.py";
    case Service::azure:
      return "azure_server.py";
  }
  throw std::runtime_error("no such service");
}

}  // namespace

ObjectServer::ObjectServer(Service service) : server_(script_of(service)) {
  const std::string server = server_.address();
  std::vector<std::pair<const char*, std::string>> environment;
  switch (service) {
    case Service::s3:
      bucket_ = "s3://bucket";
      environment = {{"AWS_ENDPOINT_URL", "http://" + server},
                     {"AWS_DEFAULT_REGION", "us-east-1"},
                     {"AWS_ACCESS_KEY_ID", "test"},
                     {"AWS_SECRET_ACCESS_KEY", "test"},
                     {"AWS_EC2_METADATA_DISABLED", "true"}};
      break;
    case Service::google:
      bucket_ = "gs://anonymous@bucket";
      query_ = "?scheme=http&endpoint_override=" + server;
      break;
    case Service::azure:
      bucket_ = "abfs://devstoreaccount1@" + server + "/bucket";
      query_ = "?enable_tls=false";
      environment = {{"AZURE_STORAGE_KEY", kAzuriteKey}};
      break;
  }
  for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
  tell("bucket bucket");
}

void ObjectServer::use_signature() {
  ::unsetenv("AZURE_STORAGE_KEY");
  ::setenv("AZURE_STORAGE_SAS_TOKEN", tell("signature").c_str(), 1);
}

}  // namespace cadre::storage_tests
