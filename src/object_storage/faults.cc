#include "object_storage/faults.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace cadre::storage {
namespace {

using Kind = StorageFault::Kind;

struct Symptom {
  std::string_view text;  // part of an error text, in lower case
  Kind kind;
  std::string_view advice;
};

constexpr std::string_view kRenew =
    "the credentials have expired or are not accepted: renew them; they are read anew with every attempt";
constexpr std::string_view kPermit = "give these credentials the right to list, read, write and delete there";
constexpr std::string_view kWait = "the storage is busy or cannot be reached";

// The first match counts. The texts for AWS are the error types of its SDK and the servers' error codes; those for
// Google and Azure are the status codes of their libraries.
constexpr std::array kSymptoms{
    Symptom{"no_such_bucket", Kind::lasting, "make the bucket, or correct its name"},
    Symptom{"nosuchbucket", Kind::lasting, "make the bucket, or correct its name"},
    Symptom{"bucket does not exist", Kind::lasting, "make the bucket, or correct its name"},
    Symptom{"containernotfound", Kind::lasting, "make the container, or correct its name"},
    Symptom{"expired", Kind::denied, kRenew},
    Symptom{"invalid_access_key_id", Kind::denied, kRenew},
    Symptom{"invalidaccesskeyid", Kind::denied, kRenew},
    Symptom{"invalid_client_token_id", Kind::denied, kRenew},
    Symptom{"unrecognized_client", Kind::denied, kRenew},
    Symptom{"signature_does_not_match", Kind::denied, kRenew},
    Symptom{"signaturedoesnotmatch", Kind::denied, kRenew},
    Symptom{"missing_authentication_token", Kind::denied, kRenew},
    Symptom{"incomplete_signature", Kind::denied, kRenew},
    Symptom{"request_time_too_skewed", Kind::denied, "set this machine's clock"},
    Symptom{"could not create a oauth2", Kind::denied, kRenew},
    Symptom{"unauthenticated", Kind::denied, kRenew},
    Symptom{"authenticationfailed", Kind::denied, kRenew},
    Symptom{"authenticationexception", Kind::denied, kRenew},
    Symptom{"access_denied", Kind::denied, kPermit},
    Symptom{"accessdenied", Kind::denied, kPermit},
    Symptom{"permission_denied", Kind::denied, kPermit},
    Symptom{"permission denied", Kind::denied, kPermit},
    Symptom{"http status 403", Kind::denied, kPermit},
    Symptom{"http status 401", Kind::denied, kRenew},
    // A response to HEAD has no error code; a healthy S3 server answers 400 when credentials have expired.
    Symptom{"http status 400", Kind::denied, "the credentials may have expired, or be for another region: renew them"},
    Symptom{"slow_down", Kind::passing, kWait},
    Symptom{"slowdown", Kind::passing, kWait},
    Symptom{"throttl", Kind::passing, kWait},
    Symptom{"internal_failure", Kind::passing, kWait},
    Symptom{"internal_server_error", Kind::passing, kWait},
    Symptom{"service_unavailable", Kind::passing, kWait},
    Symptom{"network_connection", Kind::passing, kWait},
    Symptom{"request_timeout", Kind::passing, kWait},
    Symptom{"curlcode", Kind::passing, kWait},
    Symptom{"unavailable", Kind::passing, kWait},
    Symptom{"deadline", Kind::passing, kWait},
    Symptom{"timeout", Kind::passing, kWait},
    Symptom{"timed out", Kind::passing, kWait},
    Symptom{"could not connect", Kind::passing, kWait},
    Symptom{"couldn't connect", Kind::passing, kWait},
    Symptom{"connection", Kind::passing, kWait},
    Symptom{"http status 5", Kind::passing, kWait},
    Symptom{"aws error unknown", Kind::passing, kWait},
};

}  // namespace

Diagnosis diagnose(std::string_view error) {
  std::string text(error);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found =
      std::ranges::find_if(kSymptoms, [&](const Symptom& one) { return text.find(one.text) != text.npos; });
  if (found == kSymptoms.end()) return {};
  return {found->kind, std::string(found->advice)};
}

std::string without_secrets(std::string_view error) {
  // Signatures and tokens of Azure, Amazon and Google.
  constexpr std::array secrets{std::string_view("sig="), std::string_view("X-Amz-Signature="),
                               std::string_view("X-Amz-Security-Token="), std::string_view("X-Goog-Signature=")};
  std::string text(error);
  for (const std::string_view secret : secrets) {
    for (std::size_t at = text.find(secret); at != text.npos; at = text.find(secret, at)) {
      at += secret.size();
      const std::size_t end = std::min(text.find_first_of("& \t\r\n\"'<>,;)", at), text.size());
      text.replace(at, end - at, "…");
    }
  }
  return text;
}

}  // namespace cadre::storage
