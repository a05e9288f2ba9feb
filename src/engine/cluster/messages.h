// Messages of a session between a controller and an agent, as bytes: those of the engine's interface, with a worker's
// own messages as they are.
//
//   kind    u8   index in ToAgent or ToController
//   unused  u8[7]
//   worker  u64  little-endian; 0 where it is about none
//   rest         the frame of a message (channel/frame.h), JSON, or both: JSON after its length, u64, then the frame at
//                the next multiple of eight bytes. Bytes of files are framed, too
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>

#include "channel/codec.h"
#include "engine/cluster/carried_files.h"
#include "engine/engine.h"

namespace cadre::engine::cluster {

struct Start {
  WorkerId worker = 0;
  WorkerSpec spec = {};
};
// The whole frame of an Answer, StoreReply or Reply: the agent passes it on as it is.
struct Tell {
  WorkerId worker = 0;
  std::span<const std::byte> frame = {};
};
struct Kill {
  WorkerId worker = 0;
};
// The node is given back: the agent ends its workers and itself.
struct Leave {};
// How long the agent waits for another controller when this one is gone without a Leave.
struct Stay {
  double seconds = 0;
};
// The agent is to say what it sees of a file.
struct Look {
  std::string file = {};
};
// Orders about paths below the agent's own directory, if its node does not see the run's: to send what is there, to
// rename it, or to remove it. A Piece of what it is to have comes before the message that needs it.
struct Fetch {
  std::string place = {};
};
struct Move {
  std::string from = {};
  std::string to = {};
};
struct Drop {
  std::string place = {};
};
// The agent is to try the storage where the run is published, and to use it for what follows.
struct UseStorage {
  std::string uri = {};
  std::string file = {};  // its name there; only this run's controller has written it
};
// The agent is to store the files of a directory there, in one with this name.
struct StoreFiles {
  std::string place = {};
  std::string name = {};
};
// The agent is to make a directory of files that are there; `files`: their list (storage/remote_directory.h).
struct LoadFiles {
  std::string place = {};
  std::string name = {};
  Dict files = {};
};
using ToAgent =
    std::variant<Start, Tell, Kill, Leave, Stay, Look, Piece, Fetch, Move, Drop, UseStorage, StoreFiles, LoadFiles>;

// The node will go, see NodeDraining.
struct Draining {
  std::optional<double> seconds_left = {};
  std::string reason = {};
};
// The body of a worker's message (channel/codec.h), which the agent has passed on as it came.
struct Told {
  WorkerId worker = 0;
  std::span<const std::byte> body = {};
};
// The answer to a Look.
struct Saw {
  std::string file = {};
  std::uint64_t checksum = 0;  // of its first max_seen_bytes
  std::string fault = {};      // why it cannot be read; empty: it was read
};
inline constexpr std::size_t max_seen_bytes = 4096;
// Output of workers, from a node that does not see the run's directory.
struct Printed {
  std::string file = {};     // its path below the agent's directory
  bool begins_anew = false;  // true: what was printed before is not there any more (local/output_limit.h)
  std::span<const std::byte> bytes = {};
};
// A Piece is of what was fetched, or a fault of what was to be there.
// The agent ends, as it was told to, and nothing follows.
struct Left {};
// The answers to UseStorage, StoreFiles and LoadFiles; with a fault it was not done.
struct TriedStorage {
  std::string uri = {};        // as it was told
  std::uint64_t checksum = 0;  // of that file
  std::string fault = {};
};
struct FilesStored {
  std::string place = {};
  Dict files = {};  // their list (storage/remote_directory.h), with checksums
  std::string fault = {};
};
struct FilesLoaded {
  std::string place = {};
  std::string fault = {};
  bool may_pass = false;  // true: a retry may succeed
};
using ToController =
    std::variant<Told, Exited, Draining, Saw, Piece, Printed, Left, TriedStorage, FilesStored, FilesLoaded>;

// Replace `bytes` with a message, and reuse its memory. Throw InvalidArgument for a message beyond the channel's
// limits.
void encode_start(WorkerId worker, const WorkerSpec& spec, channel::Bytes& bytes);
template <class Message>
void encode_tell(WorkerId worker, const Message& message, channel::Bytes& bytes);  // Answer, StoreReply or Reply
void encode(const Kill& kill, channel::Bytes& bytes);
void encode(const Leave& leave, channel::Bytes& bytes);
void encode(const Stay& stay, channel::Bytes& bytes);
void encode(const Look& look, channel::Bytes& bytes);
void encode_to_agent(const Piece& piece, channel::Bytes& bytes);
void encode(const Fetch& fetch, channel::Bytes& bytes);
void encode(const Move& move, channel::Bytes& bytes);
void encode(const Drop& drop, channel::Bytes& bytes);
void encode(const UseStorage& use, channel::Bytes& bytes);
void encode(const StoreFiles& store, channel::Bytes& bytes);
void encode(const LoadFiles& load, channel::Bytes& bytes);
void encode(const Told& told, channel::Bytes& bytes);
void encode(const Exited& exited, channel::Bytes& bytes);
void encode(const Draining& draining, channel::Bytes& bytes);
void encode(const Saw& saw, channel::Bytes& bytes);
void encode_to_controller(const Piece& piece, channel::Bytes& bytes);
void encode(const Printed& printed, channel::Bytes& bytes);
void encode(const Left& left, channel::Bytes& bytes);
void encode(const TriedStorage& tried, channel::Bytes& bytes);
void encode(const FilesStored& stored, channel::Bytes& bytes);
void encode(const FilesLoaded& loaded, channel::Bytes& bytes);

// The other end is not trusted: throw ProtocolError for bytes that are no such message. The bytes begin at a multiple
// of eight; frames and bodies are parts of them.
ToAgent decode_to_agent(std::span<const std::byte> bytes);
ToController decode_to_controller(std::span<const std::byte> bytes);

}  // namespace cadre::engine::cluster
