// The beginning of a connection between an agent and its controller, before the session: who they are, and whether they
// fit together. Each side sends one greeting:
//
//   magic   u32  "CDRA", little-endian as the length
//   length  u32  bytes that follow, at most max_greeting_bytes
//   text         JSON
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/resources.h"
#include "channel/frame.h"

namespace cadre::engine::cluster {

// Raised by every change after which agents and controllers of before and after do not understand each other.
inline constexpr std::int64_t protocol_version = 2;
inline constexpr std::size_t max_greeting_bytes = std::size_t{64} << 10;

// Agent to controller.
struct Hello {
  std::int64_t protocol = protocol_version;
  std::string build = {};    // of the program: build_id()
  std::string version = {};  // Cadre's
  std::string token = {};    // of the request
  std::uint64_t request = 0;
  std::int64_t ordinal = 0;   // of this node in its request
  std::uint64_t session = 0;  // drawn by the agent; another one whenever its workers have ended
  bool continues = false;     // true: this session was connected before
  std::string host = {};
  std::vector<std::string> addresses = {};  // over standard streams: by which other nodes may reach this one
  std::int64_t pid = 0;
  Resources resources = {};
  std::vector<std::string> gpu_names = {};
  // The directory in which workers of this session work if the node does not see that of their run; empty: none.
  std::string own_directory = {};
  bool operator==(const Hello&) const = default;
};

// Controller to agent.
struct Welcome {
  std::string refusal = {};  // why the agent must end; empty: it is welcome
  bool is_over = false;      // the session was given up: the agent ends its workers and begins another one
  bool operator==(const Welcome&) const = default;
};

void append(channel::Bytes& bytes, const Hello& hello);
void append(channel::Bytes& bytes, const Welcome& welcome);

// Take a greeting from the front of received bytes; empty if it has not arrived completely. The bytes are not trusted:
// throw ProtocolError if they are no greeting. Members that are missing, as in another protocol, have their defaults.
std::optional<Hello> take_hello(channel::Bytes& bytes);
std::optional<Welcome> take_welcome(channel::Bytes& bytes);

// Returns what identifies the build of this program: the linker's build id or, without one, a checksum.
const std::string& build_id();

}  // namespace cadre::engine::cluster
