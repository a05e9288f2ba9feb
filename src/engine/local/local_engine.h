// Workers on this machine, forked by the fork server of cadre::init.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/file_descriptor.h"
#include "base/pulse.h"
#include "channel/loop.h"
#include "engine/engine.h"
#include "engine/local/fork_server.h"
#include "engine/local/output_limit.h"

namespace cadre::engine::local {

// Returns the default resources of this machine: the CPUs on which this process may run.
Resources machine_resources();

// An engine on a connection to a fork server: one at a time per connection, used only by the thread that made it.
// Ends its workers when destroyed.
class LocalEngine final : public Engine {
 public:
  // Throws EngineError if another engine uses the connection.
  LocalEngine(ForkServerConnection& server, Resources resources);
  // Uses a connection of its own.
  LocalEngine(std::unique_ptr<ForkServerConnection> server, Resources resources);
  ~LocalEngine() override;

  Resources resources() const override { return resources_; }
  // Throws EngineError if the fork server is gone, InvalidArgument for an assignment beyond the channel's limits.
  void start(WorkerId worker, const WorkerSpec& spec) override;
  void answer(WorkerId worker, const channel::Answer& answer) override;
  void reply(WorkerId worker, const channel::StoreReply& reply) override;
  void reply(WorkerId worker, const channel::Reply& reply) override;
  void kill(WorkerId worker) override;
  // Throws EngineError if the event loop fails.
  std::vector<Event> wait(std::optional<std::chrono::nanoseconds> timeout) override;
  void wake() noexcept override;
  Clock::time_point now() const override { return Clock::now(); }
  double wall_seconds() const override;
  Clock::duration stopped() const override { return pulse_.stopped(); }
  // Passes the body of each message of a worker to `pass_on`, in wait(), in place of a Received event: nobody looks
  // into it here. Before the first start().
  void pass_messages_on(std::function<void(WorkerId worker, std::span<const std::byte> body)> pass_on) {
    pass_on_ = std::move(pass_on);
  }
  // Sends a worker the whole frame of an Answer or a reply as it is. Does nothing if the worker is gone.
  void send_frame(WorkerId worker, std::span<const std::byte> frame);
  // Lets the next wait() poll for some microseconds before it sleeps.
  void expect_soon() { loop_.expect_soon(); }
  // Calls `readable` in wait(), which then returns, whenever the descriptor may have become readable: read until
  // nothing is left. The caller owns it and keeps it open as long as the engine.
  void watch(int descriptor, std::function<void()> readable) { loop_.watch(descriptor, std::move(readable)); }

 private:
  struct Worker {
    std::uint64_t number = 0;  // on the connection to the fork server
    channel::ConnectionId connection = 0;
    bool last_message = false;  // true: its last message was Finished, Failed or Declined
    bool closed = false;        // true: its end of the connection is closed
    bool ended = false;         // true: the fork server has reported its end
    bool killed = false;        // true: killed by the controller
    std::filesystem::path error_output = {};
    std::uint64_t earlier_output = 0;  // size in bytes of that file before the start
    std::string detail = {};
  };

  // `own`: the same connection, if it is this engine's own.
  LocalEngine(std::unique_ptr<ForkServerConnection>&& own, ForkServerConnection& server, Resources resources);

  struct Claim {
    explicit Claim(ForkServerConnection& of);
    ~Claim() { server.release(); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ForkServerConnection& server;
  };

  void not_started(WorkerId worker, const std::string& reason);
  channel::Loop::Handlers handlers(WorkerId worker);
  void on_message(WorkerId worker, channel::Message&& message);
  void on_body(WorkerId worker, std::span<const std::byte> body);
  void on_closed(WorkerId worker, const std::string& reason);
  void on_server();
  void on_ended(const ForkServerConnection::Ended& ended);
  void on_server_gone();
  void report_end(WorkerId worker, Exit exit);
  void report_all_lost();
  void end_workers() noexcept;

  // First: destroyed after the last use of the connection.
  std::unique_ptr<ForkServerConnection> own_server_;  // null: the connection is somebody else's
  Claim claim_;
  ForkServerConnection& server_;
  Resources resources_;
  std::unordered_map<WorkerId, Worker> workers_;
  std::unordered_map<std::uint64_t, WorkerId> by_number_;
  std::vector<Event> events_;
  std::function<void(WorkerId, std::span<const std::byte>)> pass_on_;  // empty: messages are events
  OutputLimit output_limit_;
  base::FileDescriptor wake_;                 // an eventfd
  std::optional<Clock::time_point> give_up_;  // deadline for the last messages of lost workers
  base::Pulse pulse_;
  channel::Loop loop_;  // last: its callbacks use the other members
};

}  // namespace cadre::engine::local
