// The network addresses of this machine, as text: "10.0.0.1", "fd00::1".
#pragma once

#include <string>
#include <vector>

struct sockaddr;

namespace cadre::base {

// Returns the addresses by which other machines may reach this one: those of interfaces that are up, without loopback
// and link-local ones. Throws EngineError.
std::vector<std::string> outside_addresses();

// Returns the interface that has an address; empty if this machine has no such address. Throws EngineError.
std::string interface_of(const std::string& address);

// Returns the IP address of a socket's address. An IPv4 address in an IPv6 one is written as IPv4.
std::string ip_address(const sockaddr& address);

}  // namespace cadre::base
