// A hostile worker and a hostile controller: any stream of bytes gives messages and at most one error, the same at both
// ends however the bytes are cut.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "channel/codec.h"
#include "channel/loop.h"
#include "channel/worker_end.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

struct Received {
  std::vector<channel::Bytes> messages = {};  // encoded again
  bool complained = false;

  void add(const channel::Message& message) {
    channel::Bytes& frame = messages.emplace_back();
    std::visit([&](const auto& content) { encode(content, frame); }, message);
  }
  bool operator==(const Received&) const = default;
};

Received read_in_pieces(std::string_view stream, FuzzedDataProvider& cuts) {
  channel::FrameReader reader;
  Received received;
  try {
    while (!stream.empty()) {
      const std::span<std::byte> space = reader.space();
      require(space.size() <= 2 * (stream.size() + 4096), "memory grows with what has arrived");
      const std::size_t most = std::min(space.size(), stream.size());
      const auto piece = cuts.ConsumeIntegralInRange<std::size_t>(1, most);
      std::memcpy(space.data(), stream.data(), piece);
      stream.remove_prefix(piece);
      reader.received(piece);
      while (const auto body = reader.next()) received.add(channel::decode_message(*body));
    }
  } catch (const channel::ProtocolError&) {
    received.complained = true;
  }
  return received;
}

// Both ends of a connection; the bytes are already in it, and no more follow.
struct Connection {
  explicit Connection(std::string_view stream) {
    int sockets[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0, "there are sockets");
    ours = base::FileDescriptor(sockets[0]);
    theirs = base::FileDescriptor(sockets[1]);
    base::write_all(theirs.get(), stream, "connection");
    ::shutdown(theirs.get(), SHUT_WR);
  }
  base::FileDescriptor ours;
  base::FileDescriptor theirs;
};

Received read_by_the_loop(std::string_view stream) {
  static channel::Loop loop;
  Connection connection(stream);
  Received received;
  int ends = 0;
  const channel::ConnectionId id =
      loop.add_connection(std::move(connection.ours), {[&](channel::Message&& message) { received.add(message); },
                                                       [&](const std::string& reason) {
                                                         received.complained = !reason.empty();
                                                         ++ends;
                                                       }});
  while (ends == 0) loop.turn(std::chrono::seconds(1));
  loop.drain(id);
  require(ends == 1, "a connection ends once");
  loop.close(id);
  return received;
}

void read_by_a_worker(std::string_view stream) {
  Connection connection(stream);
  channel::WorkerEnd worker(std::move(connection.ours));
  try {
    worker.receive_assignment();
    for (;;) worker.report({.step = 1});
  } catch (const channel::ProtocolError&) {
  } catch (const channel::ControllerGone&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const std::string stream = input.ConsumeRandomLengthString(size);
  const Received received = read_in_pieces(stream, input);
  const Received by_the_loop = read_by_the_loop(stream);
  require(received == by_the_loop, "the loop hands on what is in the stream");
  read_by_a_worker(stream);
  return 0;
}
