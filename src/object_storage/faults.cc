#include "object_storage/faults.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace cadre::storage {
namespace {

using Fault = StorageFault::Kind;

struct Symptom {
  std::string_view text;  // in an error, in small letters
  Fault kind;
  std::string_view advice;
};

constexpr std::string_view kRenew =
    "the credentials have expired or are not accepted: renew them; they are read anew with every attempt";
constexpr std::string_view kPermit = "give these credentials the right to list, read, write and delete there";
constexpr std::string_view kWait = "the storage is busy or cannot be reached";

// The first match counts. The texts for AWS are the error types of its SDK and the servers' error codes; those for
// Google and Azure are the status codes of their libraries.
constexpr std::array kSymptoms{
    Symptom{"no_such_bucket", Fault::lasting, "make the bucket, or correct its name"},
    Symptom{"nosuchbucket", Fault::lasting, "make the bucket, or correct its name"},
    Symptom{"bucket does not exist", Fault::lasting, "make the bucket, or correct its name"},
    Symptom{"containernotfound", Fault::lasting, "make the container, or correct its name"},
    Symptom{"http status 501", Fault::lasting, "the server does not implement such requests"},
    Symptom{"expired", Fault::denied, kRenew},
    Symptom{"invalid_access_key_id", Fault::denied, kRenew},
    Symptom{"invalidaccesskeyid", Fault::denied, kRenew},
    Symptom{"invalid_client_token_id", Fault::denied, kRenew},
    Symptom{"unrecognized_client", Fault::denied, kRenew},
    Symptom{"signature_does_not_match", Fault::denied, kRenew},
    Symptom{"signaturedoesnotmatch", Fault::denied, kRenew},
    Symptom{"missing_authentication_token", Fault::denied, kRenew},
    Symptom{"incomplete_signature", Fault::denied, kRenew},
    Symptom{"request_time_too_skewed", Fault::denied, "set this machine's clock"},
    Symptom{"could not create a oauth2", Fault::denied, kRenew},
    Symptom{"unauthenticated", Fault::denied, kRenew},
    Symptom{"authenticationfailed", Fault::denied, kRenew},
    Symptom{"authenticationexception", Fault::denied, kRenew},
    Symptom{"access_denied", Fault::denied, kPermit},
    Symptom{"accessdenied", Fault::denied, kPermit},
    Symptom{"permission_denied", Fault::denied, kPermit},
    Symptom{"permission denied", Fault::denied, kPermit},
    Symptom{"http status 403", Fault::denied, kPermit},
    Symptom{"http status 401", Fault::denied, kRenew},
    // The answer to a HEAD says no more; of a server that is well, it is how S3 says that credentials have expired.
    Symptom{"http status 400", Fault::denied, "the credentials may have expired, or be for another region: renew them"},
    Symptom{"slow_down", Fault::passing, kWait},
    Symptom{"slowdown", Fault::passing, kWait},
    Symptom{"throttl", Fault::passing, kWait},
    Symptom{"internal_failure", Fault::passing, kWait},
    Symptom{"internal_server_error", Fault::passing, kWait},
    Symptom{"service_unavailable", Fault::passing, kWait},
    Symptom{"network_connection", Fault::passing, kWait},
    Symptom{"request_timeout", Fault::passing, kWait},
    Symptom{"curlcode", Fault::passing, kWait},
    Symptom{"unavailable", Fault::passing, kWait},
    Symptom{"deadline", Fault::passing, kWait},
    Symptom{"timeout", Fault::passing, kWait},
    Symptom{"timed out", Fault::passing, kWait},
    Symptom{"could not connect", Fault::passing, kWait},
    Symptom{"couldn't connect", Fault::passing, kWait},
    Symptom{"connection", Fault::passing, kWait},
    Symptom{"http status 408", Fault::passing, kWait},
    Symptom{"http status 429", Fault::passing, kWait},
    Symptom{"http status 5", Fault::passing, kWait},
    // S3 answers 409 while another request writes the object.
    Symptom{"conditionalrequestconflict", Fault::passing, kWait},
    Symptom{"operationaborted", Fault::passing, kWait},
    Symptom{"aws error unknown", Fault::passing, kWait},
};

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

// Returns true if a part of an error is a whole name: in a path, in quotes or between two tags.
bool is_name(std::string_view error, std::size_t begin, std::size_t end) {
  const char before = begin == 0 ? ' ' : error[begin - 1];
  const char after = end == error.size() ? ' ' : error[end];
  const auto goes_on = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  const auto encloses = [](char c) { return std::string_view("'\"<>").find(c) != std::string_view::npos; };
  if (goes_on(before) || goes_on(after)) return false;
  return before == '/' || after == '/' || (encloses(before) && encloses(after));
}

// Removes the names in a location from an error.
void remove_names(std::string& error, std::string_view location) {
  while (!location.empty()) {
    const std::string_view name = location.substr(0, location.find('/'));
    location.remove_prefix(std::min(location.size(), name.size() + 1));
    if (name.empty()) continue;
    for (std::size_t at = error.find(name); at != error.npos; at = error.find(name, at + 1)) {
      if (is_name(error, at, at + name.size())) error.replace(at, name.size(), "…");
    }
  }
}

}  // namespace

Diagnosis diagnose(std::string_view error, std::string_view location) {
  std::string text = in_small_letters(error);
  remove_names(text, in_small_letters(location));
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
