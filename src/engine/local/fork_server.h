// A controller's end of the fork server.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "engine/engine.h"
#include "engine/local/fork_server_main.h"
#include "engine/local/worker_table.h"

namespace cadre::engine::local {

struct Request;

// What one process has workers started through; used by one engine after the other.
class ForkServerConnection {
 public:
  struct Ended {
    std::uint64_t worker = 0;
    Exit exit;
  };

  // Of a worker that may start workers itself: WorkerParts::fork_server.
  explicit ForkServerConnection(base::FileDescriptor control) : control_(std::move(control)) {}
  // The server ends its workers.
  virtual ~ForkServerConnection() = default;
  ForkServerConnection(const ForkServerConnection&) = delete;
  ForkServerConnection& operator=(const ForkServerConnection&) = delete;

  // Asks for a worker and returns its number here. Takes effect later; an Ended follows in any case but the server's
  // end. Throws EngineError when the server is gone.
  std::uint64_t spawn(const WorkerSpec& spec, int threads, const base::FileDescriptor& connection);
  // Ends a worker's process group. Nothing happens when it, or the server, is gone.
  void kill(std::uint64_t worker);
  // The same for one that has closed its connection, perhaps because something else ends it: its Ended says if so.
  void end_disconnected(std::uint64_t worker);

  // Readable when next_ended() may have something.
  int fd() const { return control_.get(); }
  // The next end that has been told of; does not wait. When it is empty, gone() may have become true.
  std::optional<Ended> next_ended();
  bool gone() const { return gone_; }
  // Why, when it is gone.
  const std::string& reason() const { return reason_; }
  // Kills what the gone server's workers may have left in their process groups, where that is this process's to do.
  virtual void kill_groups() const {}

  // One engine at a time: true when there was none.
  bool claim();
  void release() { claimed_ = false; }

 protected:
  void send(const Request& request);
  int control() const { return control_.get(); }
  // Of the server, once it has closed the connection without a word.
  virtual std::string why_gone() const { return "the fork server ended"; }

 private:
  std::optional<Ended> read_ended();
  void note_end();
  [[noreturn]] void throw_gone() const;

  base::FileDescriptor control_;
  std::deque<Ended> early_;  // read before they were asked for
  std::uint64_t last_worker_ = 0;
  bool gone_ = false;
  bool claimed_ = false;
  std::string reason_;
};

// The connection of the process that has started the server. That is done once, before its first thread.
class ForkServer final : public ForkServerConnection {
 public:
  // Forks the server, or executes this program anew where threads are running already. The child that it makes goes on
  // as the server and never returns from here. Throws EngineError.
  static std::unique_ptr<ForkServer> start(WorkerBody body, void (*preload)(), char** argv);
  // Becomes the server when this process was executed to be one; else returns. Clears the mark of it, also when it is
  // a stale one that came with the environment.
  static void run_if_executed(WorkerBody body, void (*preload)());

  // Ends the server and all workers and waits until they are gone.
  ~ForkServer() override;

  void kill_groups() const override;

 private:
  ForkServer(pid_t server, base::FileDescriptor control, std::unique_ptr<WorkerTable> table);
  std::string why_gone() const override;

  pid_t owner_;
  pid_t server_;
  std::unique_ptr<WorkerTable> table_;
};

}  // namespace cadre::engine::local
