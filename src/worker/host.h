// The host of this process (cadre/host.h), if it has one.
#pragma once

#include <string>
#include <string_view>

#include "cadre/faults.h"
#include "cadre/host.h"

namespace cadre::worker {

// Sets the host, which must live until the program ends; nullptr: none.
void set_host(Host* host);
// Returns nullptr if there is none.
Host* find_host();
// Throws InvalidArgument, naming the function, if there is none.
Host& host_of(std::string_view function_name);
// Adds a fault if a function of a host is used in a program without one.
void check_host(const std::string& function_name, const std::string& option, Faults& faults);

}  // namespace cadre::worker
