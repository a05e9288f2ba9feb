// Greetings, and messages of a session, as an agent and a controller get them from each other or from a stranger.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/cluster/handshake.h"
#include "engine/cluster/messages.h"
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

void read(std::uint8_t what, cadre::channel::Bytes bytes) {
  switch (what % 4) {
    case 0:
      return check_greeting(take_hello(bytes), take_hello);
    case 1:
      return check_greeting(take_welcome(bytes), take_welcome);
    case 2:
      decode_to_agent(bytes);
      return;
    default:
      decode_to_controller(bytes);
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
