// A session in the standard input and output of an agent, which what starts it on its node carries to the controller
// and back: no port, no encryption, no token. Nothing can take the place of that connection: with it the node is gone.
//
// Text comes first: the program prints before cadre::init, and its launcher may. A mark ends that; the greetings of
// handshake.h follow.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "channel/frame.h"

namespace cadre::engine::cluster {

// A network that is gone for some seconds holds the bytes up, and loses none. So silence ends a connection only when
// the node is given up, too: the controller says nothing any more when it has heard nothing for `mute_after`; the agent
// ends its workers when it has heard nothing for `agent_silence`, which is 20 s after the controller heard it last.
inline constexpr auto mute_after = std::chrono::seconds(3);
inline constexpr auto agent_silence = std::chrono::seconds(17);
// After the end of a connection the agent's workers have ended, though nobody says so.
inline constexpr auto unheard_end = agent_silence + std::chrono::seconds(5);

// It has null characters, which no text has.
inline constexpr std::string_view session_mark{"\0\nCadre's session begins here\n\0", 31};
static_assert(session_mark.back() == '\0');
inline constexpr std::size_t max_noise_bytes = std::size_t{1} << 20;

// Takes everything up to the mark from received bytes.
class MarkSearch {
 public:
  // Returns true once the mark was there; `bytes` is then what follows it. Throws ProtocolError, with the last line,
  // when more than max_noise_bytes have come before.
  bool take(channel::Bytes& bytes);

 private:
  std::size_t noise_bytes_ = 0;
};

// The input and output that a process was started with.
struct StandardStreams {
  base::FileDescriptor input = {};
  base::FileDescriptor output = {};
};
// Takes them from the program: from now on it prints to standard error, and has nothing to read. Throws EngineError.
StandardStreams take_standard_streams();

}  // namespace cadre::engine::cluster
