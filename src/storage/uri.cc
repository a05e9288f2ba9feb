#include "storage/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/percent_encoding.h"
#include "cadre/error.h"

namespace cadre::storage {
namespace {

constexpr std::string_view kSeparator = "://";

bool is_scheme(std::string_view text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto may_follow = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, may_follow);
}

// Returns the first of a scheme's names, so that URIs of the same place are equal.
std::string first_name(std::string scheme) {
  if (scheme == "gcs") return "gs";
  if (scheme == "abfss") return "abfs";
  return scheme;
}

[[noreturn]] void refuse(std::string_view shown, std::string_view why) {
  throw InvalidArgument(fmt::format("the storage path {} cannot be used: {}", shown, why));
}

// Characters that are not encoded. '@' and ':' have a meaning at the beginning of a location.
constexpr std::string_view kPlainInLocations = "!$&'()*+,;=:@/";

// Throws InvalidArgument if a secret is in a usual place: a password before the host, or an option that carries one.
void refuse_secrets(const Uri& uri, std::string_view authority) {
  constexpr std::string_view how =
      "it carries a secret, and URIs are shown and stored: give credentials as the storage's own tools take them, in "
      "environment variables (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3://, AZURE_STORAGE_KEY for abfs://, "
      "GOOGLE_APPLICATION_CREDENTIALS for gs://) or in their files";
  const std::size_t at = authority.find('@');
  if (at != authority.npos && authority.substr(0, at).find(':') != authority.npos)
    refuse(uri.scheme + "://…" + std::string(authority.substr(at)), how);
  std::string query = uri.query;
  std::ranges::transform(query, query.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array secrets{"secret", "password", "account_key", "access_key", "token", "sig="};
  if (std::ranges::any_of(secrets, [&](const char* word) { return query.find(word) != query.npos; }))
    refuse(shown(uri), how);
}

}  // namespace

bool is_uri(std::string_view text) {
  const std::size_t separator = text.find(kSeparator);
  return separator != text.npos && is_scheme(text.substr(0, separator));
}

Uri parse_uri(std::string_view text) {
  if (!is_uri(text)) refuse(fmt::format("\"{}\"", text), "it is no URI such as s3://bucket/folder");
  const std::size_t separator = text.find(kSeparator);
  Uri uri{.scheme = std::string(text.substr(0, separator))};
  std::ranges::transform(uri.scheme, uri.scheme.begin(), [](unsigned char c) { return std::tolower(c); });
  uri.scheme = first_name(std::move(uri.scheme));
  std::string_view rest = text.substr(separator + kSeparator.size());
  if (const std::size_t query = rest.find('?'); query != rest.npos) {
    uri.query = rest.substr(query + 1);
    rest = rest.substr(0, query);
  }
  const std::string_view authority = rest.substr(0, rest.find('/'));
  uri.location = base::percent_decoded(rest);
  while (uri.location.size() > 1 && uri.location.ends_with('/')) uri.location.pop_back();
  refuse_secrets(uri, authority);
  if (uri.scheme == "file" && !uri.location.starts_with('/'))
    refuse(shown(uri), "a file URI has three slashes and a whole path, as in file:///folder");
  if (uri.scheme != "file" && authority.empty()) refuse(shown(uri), "it names no bucket, as in s3://bucket/folder");
  if (uri.location.find('\0') != uri.location.npos) refuse(shown(uri), "it has a zero byte");
  return uri;
}

std::string to_string(const Uri& uri) {
  return uri.scheme + std::string(kSeparator) + base::percent_encoded(uri.location, kPlainInLocations) +
         (uri.query.empty() ? "" : "?" + uri.query);
}

std::string shown(const Uri& uri) { return uri.scheme + std::string(kSeparator) + uri.location; }

std::string option(const Uri& uri, std::string_view name) {
  std::string_view rest = uri.query;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return base::percent_decoded(one.substr(name.size() + 1));
  }
  return {};
}

std::filesystem::path directory_of(const Uri& uri) {
  return uri.scheme == "file" ? std::filesystem::path(uri.location) : std::filesystem::path();
}

Uri operator/(const Uri& uri, std::string_view name) {
  Uri child = uri;
  if (!child.location.ends_with('/')) child.location += '/';
  child.location += name;
  return child;
}

Uri parent_of(const Uri& uri) {
  Uri parent = uri;
  const std::size_t slash = uri.location.rfind('/');
  if (slash == uri.location.npos) return parent;
  parent.location.resize(std::max<std::size_t>(slash, uri.scheme == "file" ? 1 : 0));
  return parent;
}

std::string name_of(const Uri& uri) {
  const std::size_t slash = uri.location.rfind('/');
  return slash == uri.location.npos ? std::string() : uri.location.substr(slash + 1);
}

}  // namespace cadre::storage
