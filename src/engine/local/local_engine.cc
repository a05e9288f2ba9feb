#include "engine/local/local_engine.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/library_threads.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "channel/codec.h"
#include "engine/local/last_output.h"
#include "resources/control_group.h"

namespace cadre::engine::local {
namespace {

// The kernel kills the workers of a dead fork server at once, but a child may hold a copy of a worker's connection.
constexpr auto lost_patience = std::chrono::seconds(1);
// Longer than the fork server waits for process groups that do not end.
constexpr auto end_patience = std::chrono::seconds(10);

constexpr int most_cpus = 4096;

std::optional<std::pair<base::FileDescriptor, base::FileDescriptor>> socket_pair() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return std::nullopt;
  return std::pair(base::FileDescriptor(sockets[0]), base::FileDescriptor(sockets[1]));
}

}  // namespace

Resources machine_resources() {
  cpu_set_t* const set = CPU_ALLOC(most_cpus);
  const bool known = ::sched_getaffinity(0, CPU_ALLOC_SIZE(most_cpus), set) == 0;
  const int cpus = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(most_cpus), set) : 1;
  CPU_FREE(set);
  const double most = std::max(1.0, std::floor(resources::group_limits().cpus.value_or(cpus)));
  return {.cpus = std::min<double>(cpus, most), .gpus = 0, .custom = {}};
}

LocalEngine::Claim::Claim(ForkServerConnection& of) : server(of) {
  if (!server.claim()) throw EngineError("another run in this process uses the fork server; wait until it has ended");
}

LocalEngine::LocalEngine(ForkServerConnection& server, Resources resources)
    : LocalEngine(std::unique_ptr<ForkServerConnection>(), server, std::move(resources)) {}

LocalEngine::LocalEngine(std::unique_ptr<ForkServerConnection> server, Resources resources)
    : LocalEngine(std::move(server), *server, std::move(resources)) {}

LocalEngine::LocalEngine(std::unique_ptr<ForkServerConnection>&& own, ForkServerConnection& server, Resources resources)
    : own_server_(std::move(own)),
      claim_(server),
      server_(server),
      resources_(std::move(resources)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw EngineError("cannot make the engine's eventfd: " + base::last_system_error());
  loop_.watch(server_.fd(), [this] { on_server(); });
  loop_.watch(wake_.get(), [this] {
    std::uint64_t count = 0;
    while (::read(wake_.get(), &count, sizeof count) > 0) {
    }
  });
}

LocalEngine::~LocalEngine() { end_workers(); }

void LocalEngine::start(WorkerId worker, const WorkerSpec& spec) {
  auto sockets = socket_pair();
  if (!sockets) return not_started(worker, "cannot make a connection: " + base::last_system_error());
  const channel::ConnectionId connection = loop_.add_connection(std::move(sockets->first), handlers(worker));
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(spec.directory / "stderr", none);
  const std::uint64_t earlier_output = none ? 0 : size;
  try {
    loop_.send(connection, spec.assignment);
    const std::uint64_t number = server_.spawn(spec, base::thread_count(spec.cpus), sockets->second);
    workers_[worker] = Worker{.number = number,
                              .connection = connection,
                              .error_output = spec.directory / "stderr",
                              .earlier_output = earlier_output};
    by_number_[number] = worker;
    output_limit_.watch(worker, spec.directory);
  } catch (const EngineError& error) {
    loop_.close(connection);
    if (server_.gone()) throw;
    not_started(worker, error.what());
  } catch (...) {
    loop_.close(connection);
    throw;
  }
}

channel::Loop::Handlers LocalEngine::handlers(WorkerId worker) {
  channel::Loop::Handlers handlers{.closed = [this, worker](const std::string& reason) { on_closed(worker, reason); }};
  if (pass_on_) {
    handlers.body = [this, worker](std::span<const std::byte> body) { on_body(worker, body); };
  } else {
    handlers.message = [this, worker](channel::Message&& message) { on_message(worker, std::move(message)); };
  }
  return handlers;
}

void LocalEngine::not_started(WorkerId worker, const std::string& reason) {
  events_.emplace_back(Exited{worker, {Exit::Kind::not_started, 0, reason}});
}

void LocalEngine::answer(WorkerId worker, const channel::Answer& answer) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) loop_.send(found->second.connection, answer);
}

void LocalEngine::reply(WorkerId worker, const channel::StoreReply& reply) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) loop_.send(found->second.connection, reply);
}

void LocalEngine::reply(WorkerId worker, const channel::Reply& reply) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) loop_.send(found->second.connection, reply);
}

void LocalEngine::send_frame(WorkerId worker, std::span<const std::byte> frame) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) loop_.send_frame(found->second.connection, frame);
}

void LocalEngine::kill(WorkerId worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second.killed = true;
  server_.kill(found->second.number);
}

std::vector<Event> LocalEngine::wait(std::optional<std::chrono::nanoseconds> timeout) {
  const bool ready = !events_.empty();
  if (give_up_ && !ready) {
    const std::chrono::nanoseconds left = *give_up_ - Clock::now();
    timeout = timeout ? std::min(*timeout, left) : left;
  }
  loop_.turn(ready ? std::chrono::nanoseconds::zero() : timeout);
  if (give_up_ && Clock::now() >= *give_up_) report_all_lost();
  return std::exchange(events_, {});
}

void LocalEngine::wake() noexcept {
  const int keep = errno;  // a signal handler must not change it
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
  errno = keep;
}

double LocalEngine::wall_seconds() const { return base::wall_seconds(); }

void LocalEngine::on_message(WorkerId worker, channel::Message&& message) {
  workers_.at(worker).last_message = channel::is_last(message);
  events_.emplace_back(Received{worker, std::move(message)});
}

void LocalEngine::on_body(WorkerId worker, std::span<const std::byte> body) {
  workers_.at(worker).last_message = channel::is_last_message(body);
  pass_on_(worker, body);
}

void LocalEngine::on_closed(WorkerId worker, const std::string& reason) {
  Worker& state = workers_.at(worker);
  state.closed = true;
  state.detail = reason;
  if (state.ended) return;  // on_ended() handles the rest
  if (server_.gone()) return report_end(worker, {Exit::Kind::lost, 0, server_.reason()});
  // The worker can neither report nor receive a stop any more. If it simply ended, its exit status is fixed already.
  if (state.last_message) return;
  if (reason.empty()) return server_.end_disconnected(state.number);
  server_.kill(state.number);
}

void LocalEngine::on_server() {
  while (const auto ended = server_.next_ended()) on_ended(*ended);
  if (server_.gone() && !give_up_) on_server_gone();
}

void LocalEngine::on_ended(const ForkServerConnection::Ended& ended) {
  const auto found = by_number_.find(ended.worker);
  if (found == by_number_.end()) return;
  const WorkerId worker = found->second;
  Worker& state = workers_.at(worker);
  state.ended = true;
  loop_.drain(state.connection);
  Exit exit = ended.exit;
  if (exit.detail.empty()) exit.detail = state.detail;
  if (!state.last_message && !state.killed && exit.kind != Exit::Kind::not_started)
    exit.output = last_output(state.error_output, state.earlier_output);
  report_end(worker, std::move(exit));
}

void LocalEngine::on_server_gone() {
  give_up_ = Clock::now() + lost_patience;
  server_.kill_groups();
  std::vector<WorkerId> closed;
  for (const auto& [worker, state] : workers_) {
    if (state.closed) closed.push_back(worker);
  }
  for (const WorkerId worker : closed) report_end(worker, {Exit::Kind::lost, 0, server_.reason()});
}

void LocalEngine::report_end(WorkerId worker, Exit exit) {
  const auto found = workers_.find(worker);
  loop_.close(found->second.connection);
  by_number_.erase(found->second.number);
  workers_.erase(found);
  output_limit_.worker_ended(worker);
  events_.emplace_back(Exited{worker, std::move(exit)});
}

void LocalEngine::report_all_lost() {
  while (!workers_.empty()) {
    const WorkerId worker = workers_.begin()->first;
    loop_.drain(workers_.at(worker).connection);
    if (workers_.contains(worker)) report_end(worker, {Exit::Kind::lost, 0, server_.reason()});
  }
  give_up_.reset();
}

void LocalEngine::end_workers() noexcept {
  try {
    for (const auto& [worker, state] : workers_) server_.kill(state.number);
    for (const auto deadline = now() + end_patience; !workers_.empty() && now() < deadline;) wait(deadline - now());
  } catch (const Error& error) {
    std::fprintf(stderr, "cadre: workers are left to the fork server, which ends them with itself: %s\n", error.what());
  }
}

}  // namespace cadre::engine::local
