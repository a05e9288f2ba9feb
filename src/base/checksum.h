// XXH3, 64 bits (xxhash.com): detects accidental damage, not malicious changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace cadre::base {

std::uint64_t checksum_of(std::string_view bytes);

namespace detail {
struct FreeHashState {
  void operator()(XXH3_state_s* state) const;
};
}  // namespace detail

// The same checksum for bytes that come in pieces.
class Checksum {
 public:
  Checksum();
  void add(std::string_view bytes);
  std::uint64_t value() const;
  void reset();

 private:
  std::unique_ptr<XXH3_state_s, detail::FreeHashState> state_;
};

// XXH3, 128 bits, for bytes that come in pieces: a name for contents. Different contents share it only if constructed
// to.
class ContentHash {
 public:
  ContentHash();
  void add(std::string_view bytes);
  std::string hex() const;  // 32 digits, as `xxhsum -H2` prints them

 private:
  std::unique_ptr<XXH3_state_s, detail::FreeHashState> state_;
};

}  // namespace cadre::base
