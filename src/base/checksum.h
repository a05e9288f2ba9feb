// XXH3, 64 bits (xxhash.com): notices damage, not malice.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

struct XXH3_state_s;

namespace cadre::base {

std::uint64_t checksum_of(std::string_view bytes);

// The same of bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  void add(std::string_view bytes);
  std::uint64_t value() const;
  void reset();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace cadre::base
