// Access tokens for Google's and Azure's storages from all sources, and signatures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <optional>

#include "object_storage/azure_credentials.h"
#include "object_storage/azure_tokens.h"
#include "object_storage/faults.h"
#include "object_storage/google_credentials.h"
#include "object_storage/signatures.h"
#include "python_server.h"
#include "storage/storage.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::storage_tests {
namespace {

using namespace std::chrono_literals;
using storage::AzureCredentials;
using storage::StorageFault;
using test_support::message_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Credentials : public testing::Test {
 protected:
  // Clears the environment that an earlier test set: only under ctest is each test a process of its own.
  void SetUp() override {
    for (const char* name : {"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_TENANT_ID", "AZURE_CLIENT_ID",
                             "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_STORAGE_ACCOUNT",
                             "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "IDENTITY_ENDPOINT"})
      ::unsetenv(name);
    set("HOME", directory_.path());
    set("CLOUDSDK_CONFIG", directory_ / "gcloud");
    set("GCE_METADATA_HOST", server_.address());
    set("AZURE_AUTHORITY_HOST", url());
    set("AZURE_POD_IDENTITY_AUTHORITY_HOST", url());
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  std::string url() const { return "http://" + server_.address(); }
  static std::string azure_token(AzureCredentials::Kind kind) {
    return storage::azure_access_token({.kind = kind}).text;
  }

  test_support::TemporaryDirectory directory_;
  PythonServer server_{"token_server.py", {directory_.path()}};
};

TEST_F(Credentials, OfGooglesServiceAccountsSignForThemselves) {
  set("GOOGLE_APPLICATION_CREDENTIALS", directory_ / "service_account.json");
  const storage::AccessToken token = storage::google_access_token();
  EXPECT_EQ(token.text, "service account of me@project");
  const auto good_for = token.expires - std::chrono::system_clock::now();
  EXPECT_GT(good_for, 50min);
  EXPECT_LE(good_for, 60min);
}

TEST_F(Credentials, OfGooglesUsersAreThoseOfGcloud) {
  std::filesystem::create_directories(directory_ / "gcloud");
  std::filesystem::copy_file(directory_ / "user.json", directory_ / "gcloud" / "application_default_credentials.json");
  EXPECT_EQ(storage::google_access_token().text, "user");
}

TEST_F(Credentials, OfNobodyAreThoseOfGooglesMachine) { EXPECT_EQ(storage::google_access_token().text, "machine"); }

TEST_F(Credentials, OfAnotherKindAreNamed) {
  set("GOOGLE_APPLICATION_CREDENTIALS", directory_ / "other.json");
  EXPECT_THAT(message_of<StorageFault>([] { storage::google_access_token(); }),
              AllOf(HasSubstr("other.json"), HasSubstr("external_account")));
  test_support::write_bytes(directory_ / "broken.json", "{\"type\": \"service_account\"");
  set("GOOGLE_APPLICATION_CREDENTIALS", directory_ / "broken.json");
  EXPECT_THAT(message_of<StorageFault>([] { storage::google_access_token(); }), HasSubstr("broken.json"));
  test_support::write_bytes(directory_ / "broken.json", R"({"type": "service_account", "private_key": "none"})");
  EXPECT_THAT(message_of<StorageFault>([] { storage::google_access_token(); }), HasSubstr("private key"));
}

TEST_F(Credentials, OfAzureAreLookedForInTheOrderOfItsLibraries) {
  set("PATH", directory_ / "bin");  // without the program az
  using Kind = AzureCredentials::Kind;
  EXPECT_EQ(azure_token(Kind::chain), "machine itself");
  EXPECT_EQ(storage::azure_access_token({.kind = Kind::managed_identity, .client_id = "mine"}).text, "machine mine");
  EXPECT_THAT(message_of<StorageFault>([] { azure_token(Kind::cli); }), HasSubstr("az login"));

  std::filesystem::create_directories(directory_ / "bin");
  test_support::write_bytes(directory_ / "bin" / "az",
                            "#!/bin/sh\n[ \"$*\" = 'account get-access-token --resource https://storage.azure.com "
                            "--output json' ] && echo '{\"accessToken\": \"user\", \"expires_on\": 4000000000}'\n");
  std::filesystem::permissions(directory_ / "bin" / "az", std::filesystem::perms::owner_all);
  EXPECT_EQ(azure_token(Kind::cli), "user");
  EXPECT_EQ(azure_token(Kind::chain), "user");

  set("AZURE_TENANT_ID", "tenant");
  set("AZURE_CLIENT_ID", "client");
  EXPECT_EQ(azure_token(Kind::chain), "user");
  EXPECT_THAT(message_of<StorageFault>([] { azure_token(Kind::workload_identity); }),
              HasSubstr("AZURE_FEDERATED_TOKEN_FILE"));
  test_support::write_bytes(directory_ / "federated", "federated");
  set("AZURE_FEDERATED_TOKEN_FILE", directory_ / "federated");
  EXPECT_EQ(azure_token(Kind::chain), "workload identity");
  EXPECT_THAT(message_of<StorageFault>([] { azure_token(Kind::environment); }), HasSubstr("AZURE_CLIENT_SECRET"));
  set("AZURE_CLIENT_SECRET", "s&cret");
  EXPECT_EQ(azure_token(Kind::chain), "environment");
  set("AZURE_CLIENT_SECRET", "wrong");
  EXPECT_THAT(message_of<StorageFault>([] { azure_token(Kind::environment); }),
              AllOf(HasSubstr("401"), HasSubstr("/tenant/"), Not(HasSubstr("wrong"))));
}

TEST_F(Credentials, OfAzureAreThoseOfTheUriElseOfTheEnvironment) {
  using Kind = AzureCredentials::Kind;
  const auto kind_of = [](const std::string& query) {
    return storage::azure_credentials(storage::parse_uri("abfs://account@container/folder" + query), "account").kind;
  };
  EXPECT_EQ(kind_of(""), Kind::chain);
  EXPECT_EQ(kind_of("?enable_tls=true&client_id=mine"), Kind::managed_identity);
  set("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=2");
  EXPECT_EQ(kind_of(""), Kind::signature);
  EXPECT_EQ(storage::azure_credentials(storage::parse_uri("abfs://account@container/folder"), "account").secret,
            "sv=1&sig=2");
  set("AZURE_STORAGE_KEY", "a2V5");
  EXPECT_EQ(kind_of(""), Kind::key);
  set("AZURE_STORAGE_ACCOUNT", "another");
  EXPECT_EQ(kind_of(""), Kind::chain) << "the key is that of another account";
  set("AZURE_STORAGE_ACCOUNT", "account");
  for (const auto& [name, kind] : {std::pair{"anonymous", Kind::anonymous},
                                   {"cli", Kind::cli},
                                   {"environment", Kind::environment},
                                   {"workload_identity", Kind::workload_identity}})
    EXPECT_EQ(kind_of(std::string("?credential_kind=") + name), kind);
}

TEST_F(Credentials, AreFetchedAnewShortlyBeforeTheyExpire) {
  int fetched = 0;
  auto good_for = 6min;
  storage::AccessTokens tokens(
      [&] { return storage::AccessToken{std::to_string(++fetched), std::chrono::system_clock::now() + good_for}; });
  EXPECT_EQ(tokens.get(), "1");
  EXPECT_EQ(tokens.get(), "1");
  tokens.renew();
  good_for = 4min;
  EXPECT_EQ(tokens.get(), "2");
  EXPECT_EQ(tokens.get(), "3");
  EXPECT_EQ(header_with_token(tokens, "https://server/path"), "Authorization: Bearer 4");
  EXPECT_THAT(message_of<StorageFault>([&] { header_with_token(tokens, "http://server/path"); }), HasSubstr("TLS"));
}

// https://datatracker.ietf.org/doc/html/rfc4648#section-10 and rfc4231#section-4.3
TEST(Signatures, AreThoseOfTheStandards) {
  EXPECT_EQ(storage::base64(""), "");
  EXPECT_EQ(storage::base64("f"), "Zg==");
  EXPECT_EQ(storage::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(storage::base64_of_urls("\xfb\xff"), "-_8");
  for (const char* text : {"", "f", "fo", "foo", "foob"}) EXPECT_EQ(storage::from_base64(storage::base64(text)), text);
  EXPECT_THROW(storage::from_base64("*"), StorageFault);
  EXPECT_EQ(storage::base64(storage::hmac_sha256("Jefe", "what do ya want for nothing?")),
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");  // 5bdcc146 ... 64ec3843
}

TEST(Faults, OfBusyServersPass) {
  for (const char* fault :
       {"HTTP status 408 ", "HTTP status 429 {\"reason\": \"rateLimitExceeded\"}", "HTTP status 500 ",
        "HTTP status 409 <Code>ConditionalRequestConflict</Code>", "HTTP status 409 <Code>OperationAborted</Code>"})
    EXPECT_EQ(storage::diagnose(fault, "").kind, StorageFault::Kind::passing) << fault;
  EXPECT_EQ(storage::diagnose("HTTP status 501 <Code>NotImplemented</Code>", "").kind, StorageFault::Kind::lasting);
}

TEST(Faults, AreNotOfTheKindThatNamesOfObjectsSound) {
  using Kind = StorageFault::Kind;
  const auto kind_of = [](const char* fault, const char* location) { return storage::diagnose(fault, location).kind; };
  EXPECT_EQ(kind_of("Path does not exist 'bucket/Timeouts/connection'", "bucket/Timeouts/connection"), Kind::lasting);
  EXPECT_EQ(kind_of("HTTP status 404 {\"message\": \"No such object: timeout/x/published.json\"}",
                    "gs://timeout/x/published.json"),
            Kind::lasting);
  EXPECT_EQ(kind_of("HTTP status 503 <Code>Busy</Code><Key>expired/lease.json</Key><BucketName>throttled</BucketName>",
                    "s3://throttled/expired/lease.json"),
            Kind::passing);
  EXPECT_EQ(kind_of("When reading information for key 'expired' in bucket 'bucket': AWS Error ACCESS_DENIED during "
                    "HeadObject operation: No response body.",
                    "bucket/expired"),
            Kind::denied);
  const storage::Diagnosis diagnosis = storage::diagnose(
      "When listing objects under key 'x' in bucket 'bucket': AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: "
      "The specified bucket does not exist",
      "bucket/x");
  EXPECT_EQ(diagnosis.advice, "make the bucket, or correct its name");
}

TEST(Faults, ShowNoSignatures) {
  EXPECT_EQ(storage::without_secrets("GET https://host/c?se=2099&sig=1ag%2F=&sp=r failed: sig=abc"),
            "GET https://host/c?se=2099&sig=…&sp=r failed: sig=…");
}

}  // namespace
}  // namespace cadre::storage_tests
