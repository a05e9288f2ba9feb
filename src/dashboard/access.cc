#include "dashboard/access.h"

#include <algorithm>
#include <array>

namespace cadre::dashboard {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"127.0.0.1", "localhost", "[::1]"};

// Returns a host without its port.
std::string_view name_of(std::string_view host) {
  const std::size_t from = host.starts_with('[') ? host.find(']') : 0;
  return from == std::string_view::npos ? host : host.substr(0, host.find(':', from));
}

std::string_view first_part(std::string_view target) {
  if (target.starts_with('/')) target.remove_prefix(1);
  return target.substr(0, target.find_first_of("/?#"));
}

}  // namespace

bool are_equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;  // volatile: no comparison may end early
  for (std::size_t i = 0; i < a.size(); ++i)
    difference =
        static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return difference == 0;
}

std::optional<Refusal> refusal_of(const http::Request& request, std::string_view token) {
  if (std::ranges::find(kNames, name_of(request.host)) == kNames.end()) return Refusal::foreign_host;
  if (request.origin && *request.origin != "http://" + request.host) return Refusal::foreign_origin;
  if (!are_equal_in_constant_time(first_part(request.target), token)) return Refusal::wrong_token;
  return std::nullopt;
}

bool is_from_own_page(const http::Request& request) {
  if (request.fetch_site) return *request.fetch_site == "same-origin";
  return request.origin.has_value();  // refusal_of has compared it
}

bool is_json(const http::Request& request) {
  std::string_view type = request.content_type;
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  return std::ranges::equal(type, kJson, {},
                            [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
}

std::string_view after_token(std::string_view target) {
  if (target.starts_with('/')) target.remove_prefix(1);
  const std::size_t end = target.find_first_of("/?#");
  return end == std::string_view::npos ? std::string_view() : target.substr(end);
}

}  // namespace cadre::dashboard
