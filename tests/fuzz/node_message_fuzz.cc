// Greetings, and messages of a session, as an agent and a controller get them from each other or from a stranger.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "engine/cluster/handshake.h"
#include "engine/cluster/messages.h"
#include "engine/cluster/stdio.h"
#include "fuzz/require.h"

using namespace cadre::engine::cluster;  // NOLINT(google-build-using-namespace)

namespace {

// Everything that can be read can be written and read again.
template <class Greeting>
void check_greeting(const std::optional<Greeting>& read, std::optional<Greeting> (*take)(cadre::channel::Bytes&)) {
  if (!read) return;
  cadre::channel::Bytes bytes;
  append(bytes, *read);
  if (bytes.size() > max_greeting_bytes) return;
  cadre::fuzz::require(take(bytes).has_value(), "a greeting that was read cannot be read again");
}

// The mark is found however the bytes are cut, and what follows it stays.
void check_mark(const cadre::channel::Bytes& bytes, std::size_t piece) {
  const auto* const mark = reinterpret_cast<const std::byte*>(session_mark.data());
  const auto found = std::search(bytes.begin(), bytes.end(), mark, mark + session_mark.size());
  MarkSearch search;
  cadre::channel::Bytes held;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(at + piece, bytes.size());
    held.insert(held.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                bytes.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
    if (!search.take(held)) continue;
    held.insert(held.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
    const bool is_right =
        found != bytes.end() && std::equal(held.begin(), held.end(), found + std::ssize(session_mark), bytes.end());
    return cadre::fuzz::require(is_right, "a mark was found that is not there, or bytes behind it are gone");
  }
  cadre::fuzz::require(found == bytes.end(), "a mark was not found");
}

void read(std::uint8_t what, cadre::channel::Bytes bytes) {
  switch (what % 5) {
    case 0:
      return check_greeting(take_hello(bytes), take_hello);
    case 1:
      return check_greeting(take_welcome(bytes), take_welcome);
    case 2:
      decode_to_agent(bytes);
      return;
    case 3:
      decode_to_controller(bytes);
      return;
    default:
      check_mark(bytes, 1U + what / 5U);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* const first = reinterpret_cast<const std::byte*>(data) + 1;
  try {
    read(data[0], cadre::channel::Bytes(first, first + size - 1));
  } catch (const cadre::channel::ProtocolError&) {
  }
  return 0;
}
