// Access control: a request must have the token, name this machine's loopback, and come from no page of another origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace cadre::dashboard {

enum class Refusal {
  foreign_host,    // the header Host names another machine, as after DNS rebinding
  foreign_origin,  // a page of another origin asks
  wrong_token,     // the first part of the path is not the token
};

// Returns why a request is refused; empty: it is allowed. Any port is allowed in Host, so that a tunnel may use another
// one.
std::optional<Refusal> refusal_of(const http::Request& request, std::string_view token);

// Returns true if a browser says, in Origin or Sec-Fetch-Site, that a page of the dashboard has made an allowed
// request. Without these headers it is not known who has.
bool is_from_own_page(const http::Request& request);
// Returns true for a body of JSON: no form can send it, so a page of another origin had to ask for permission before.
bool is_json(const http::Request& request);

// Compares two texts in a time that depends on nothing but their lengths.
bool are_equal_in_constant_time(std::string_view a, std::string_view b);

// Returns the part of a target after the token: "/events?id=1" of "/<token>/events?id=1"; empty if nothing follows it.
std::string_view after_token(std::string_view target);

}  // namespace cadre::dashboard
