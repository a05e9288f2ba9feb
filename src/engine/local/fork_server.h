// A controller's end of the fork server.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/engine.h"
#include "engine/local/fork_server_main.h"
#include "engine/local/worker_table.h"

namespace cadre::engine::local {

struct Request;

// A process's connection to the fork server, used by one engine at a time.
class ForkServerConnection {
 public:
  struct Ended {
    std::uint64_t worker = 0;
    Exit exit;
  };

  // Uses the socket of a worker that may start workers itself: WorkerParts::fork_server.
  explicit ForkServerConnection(base::FileDescriptor control) : control_(std::move(control)) {}
  // Closes the connection; the server then ends its workers.
  virtual ~ForkServerConnection() = default;
  ForkServerConnection(const ForkServerConnection&) = delete;
  ForkServerConnection& operator=(const ForkServerConnection&) = delete;

  // Opens a further connection of this process, for an engine that works at the same time. May be called in any thread.
  // Throws EngineError.
  std::unique_ptr<ForkServerConnection> connect() const;

  // Requests a worker and returns its number on this connection. The server forks it later; an Ended always follows
  // unless the server ends. Throws EngineError if the server is gone, the directory's path is too long or the request
  // cannot be sent.
  std::uint64_t spawn(const WorkerSpec& spec, int threads, const base::FileDescriptor& connection);
  // Kills a worker's process group. Does nothing if the worker or the server is gone.
  void kill(std::uint64_t worker);
  // Does the same for a worker that has closed its connection, perhaps because it is ending for another reason: its
  // Ended then has that reason.
  void end_disconnected(std::uint64_t worker);

  // Returns a descriptor that is readable when next_ended() may return something.
  int fd() const { return control_.get(); }
  // Returns the next reported end without waiting. When it is empty, gone() may have become true.
  std::optional<Ended> next_ended();
  bool gone() const { return gone_; }
  // Returns why the server is gone; empty while it is not.
  const std::string& reason() const { return reason_; }
  // Kills the process groups of the gone server's workers, if that is this process's task.
  virtual void kill_groups() const {}

  // Reserves the connection for one engine; returns false if another engine has it.
  bool claim();
  void release() { claimed_ = false; }

 protected:
  void send(const Request& request);
  int control() const { return control_.get(); }
  // Returns how the server ended after it closed the connection without a message.
  virtual std::string why_gone() const { return "the fork server ended"; }

 private:
  std::optional<Ended> read_ended();
  void note_end();
  [[noreturn]] void throw_gone() const;

  base::FileDescriptor control_;
  std::deque<Ended> early_;  // read before next_ended() asked for them
  std::uint64_t last_worker_ = 0;
  bool gone_ = false;
  std::atomic<bool> claimed_ = false;
  std::string reason_;
};

// The connection of the process that started the server, which happens once.
class ForkServer final : public ForkServerConnection {
 public:
  // Forks the server, or executes this program again if other threads are running already. The child continues as the
  // server and never returns from here. It closes the descriptors `not_inherited`. Throws EngineError.
  static std::unique_ptr<ForkServer> start(WorkerBody body, std::function<void()> preload, char** argv,
                                           const std::vector<int>& not_inherited = {});
  // Executes a program, found in PATH, as the server. Throws EngineError.
  static std::unique_ptr<ForkServer> execute(std::vector<std::string> command);
  // Becomes the server if this process was executed to be one, otherwise returns. Removes its mark from the
  // environment, also a stale one that was inherited.
  static void run_if_executed(WorkerBody body, std::function<void()> preload, ServerInput input = {});

  // Ends the server and all workers and waits until they are gone.
  ~ForkServer() override;

  void kill_groups() const override;

 private:
  ForkServer(pid_t server, base::FileDescriptor control, std::unique_ptr<WorkerTable> table);
  // Executes the program, or runs the server in the fork if `program` is null.
  static std::unique_ptr<ForkServer> fork_or_execute(char** argv, const char* program, WorkerBody body,
                                                     std::function<void()> preload,
                                                     const std::vector<int>& not_inherited);
  std::string why_gone() const override;

  pid_t owner_;
  pid_t server_;
  std::unique_ptr<WorkerTable> table_;
};

}  // namespace cadre::engine::local
