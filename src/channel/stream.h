// A stream of bytes to a process on this or another machine that never blocks.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "cadre/error.h"

namespace cadre::channel {

// Thrown when nothing can be read from a stream or written to it any more: the other end has closed it, or it broke.
class StreamEnded : public Error {
 public:
  using Error::Error;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Reads bytes that have arrived, and returns how many; 0: none at this time. Throws StreamEnded.
  virtual std::size_t read(std::span<std::byte> space) = 0;
  // Writes bytes that fit into the buffers of the operating system, and returns how many; 0: none at this time. After
  // that the same bytes must come first in the next call. Throws StreamEnded.
  virtual std::size_t write(std::span<const std::byte> bytes) = 0;
  // Returns true if read() has something, though the descriptor may not say so.
  virtual bool has_more_to_read() const { return false; }
  // Returns true if the last write(), or what the stream itself has to write, waits until the descriptor can be
  // written.
  virtual bool waits_to_write() const = 0;

  // Returns the descriptor to watch.
  virtual int descriptor() const = 0;
};

// A connected socket.
class SocketStream final : public Stream {
 public:
  // Makes the socket non-blocking.
  explicit SocketStream(base::FileDescriptor socket);

  std::size_t read(std::span<std::byte> space) override;
  std::size_t write(std::span<const std::byte> bytes) override;
  bool waits_to_write() const override { return is_full_; }
  int descriptor() const override { return socket_.get(); }

 private:
  base::FileDescriptor socket_;
  bool is_full_ = false;
};

// Two descriptors, such as the standard input and output of a process: pipes, sockets or terminals in raw mode. The
// process must ignore SIGPIPE.
class PairStream final : public Stream {
 public:
  // Makes both non-blocking. Throws StreamEnded for files and devices, for which nothing can wait.
  PairStream(base::FileDescriptor input, base::FileDescriptor output);

  std::size_t read(std::span<std::byte> space) override;
  std::size_t write(std::span<const std::byte> bytes) override;
  bool waits_to_write() const override { return false; }  // its own descriptor is readable then, too
  int descriptor() const override { return both_.get(); }

 private:
  base::FileDescriptor input_;
  base::FileDescriptor output_;
  base::FileDescriptor both_;  // an epoll: the input, and the output while a write waits
  bool is_full_ = false;
};

}  // namespace cadre::channel
