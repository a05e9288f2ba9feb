#include "base/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/system_error.h"
#include "cadre/error.h"

namespace cadre::base {
namespace {

using AddressList = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

AddressList list_addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw EngineError("cannot list this machine's addresses: " + last_system_error());
  return {all, &::freeifaddrs};
}

bool is_usable(const ifaddrs& one) {
  return one.ifa_addr != nullptr && (one.ifa_flags & IFF_UP) != 0 &&
         (one.ifa_addr->sa_family == AF_INET || one.ifa_addr->sa_family == AF_INET6);
}

bool is_inside(const ifaddrs& one) {
  if ((one.ifa_flags & IFF_LOOPBACK) != 0) return true;
  return one.ifa_addr->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr);
}

}  // namespace

std::string ip_address(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = address.sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                          : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  ::inet_ntop(address.sa_family, bytes, text.data(), text.size());
  const std::string_view found = text.data();
  constexpr std::string_view mapped = "::ffff:";  // begins an IPv4-mapped address, as a dual-stack socket has it
  return std::string(found.starts_with(mapped) ? found.substr(mapped.size()) : found);
}

std::vector<std::string> outside_addresses() {
  std::vector<std::string> addresses;
  const AddressList list = list_addresses();
  for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
    if (is_usable(*one) && !is_inside(*one)) addresses.push_back(ip_address(*one->ifa_addr));
  }
  return addresses;
}

std::string interface_of(const std::string& address) {
  const AddressList list = list_addresses();
  for (const ifaddrs* one = list.get(); one != nullptr; one = one->ifa_next) {
    if (is_usable(*one) && ip_address(*one->ifa_addr) == address) return one->ifa_name;
  }
  return {};
}

}  // namespace cadre::base
