#include "engine/local/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "base/system_error.h"
#include "cadre/error.h"
#include "engine/local/collapse_memory.h"
#include "engine/local/fork_protocol.h"
#include "engine/local/outside_signals.h"

namespace cadre::engine::local {
namespace {

// "<control descriptor>,<table descriptor>,<process id of the controller>", in the environment of the server only.
constexpr const char* mark_name = "CADRE_FORK_SERVER";
// Longer than the server's own limit for its end.
constexpr std::chrono::milliseconds server_end_patience{15'000};

std::string child_reason(pid_t process) {
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(process, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended != process) return "the fork server ended";
  const Exit exit = WIFSIGNALED(status) ? Exit{Exit::Kind::signal, WTERMSIG(status), ""}
                                        : Exit{Exit::Kind::code, WEXITSTATUS(status), ""};
  return "the fork server " + to_string(exit);
}

// Environment of an executed server, made before the fork: after it, a process with threads may only make system
// calls.
struct Execution {
  std::string mark;
  std::vector<char*> environment;
};

Execution prepare_execution(int control, int table) {
  Execution execution;
  execution.mark = std::string(mark_name) + "=" + std::to_string(control) + "," + std::to_string(table) + "," +
                   std::to_string(::getpid());
  for (char** entry = ::environ; *entry != nullptr; ++entry) execution.environment.push_back(*entry);
  execution.environment.push_back(execution.mark.data());
  execution.environment.push_back(nullptr);
  return execution;
}

void keep_when_executed(int fd) { ::fcntl(fd, F_SETFD, 0); }

// Returns the result of sendmsg(2) or send(2), which `call` calls, and calls it again after a signal: a server that is
// busy keeps it waiting, and the system does not continue it after every handler, such as those of Python.
template <class Call>
ssize_t send_despite_signals(const Call& call) {
  for (;;) {
    const ssize_t sent = call();
    if (sent >= 0 || errno != EINTR) return sent;
  }
}

// Sends a request together with a descriptor. Returns false, with errno, if that is not possible.
bool send_with(int control, Request& request, const base::FileDescriptor& descriptor) {
  iovec part{&request, offsetof(Request, directory) + std::strlen(request.directory) + 1};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = descriptor.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return send_despite_signals([&] { return ::sendmsg(control, &message, MSG_NOSIGNAL); }) >= 0;
}

bool is_packet_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

}  // namespace

std::unique_ptr<ForkServer> ForkServer::start(WorkerBody body, std::function<void()> preload, char** argv,
                                              const std::vector<int>& not_inherited) {
  if (!other_threads().empty()) return fork_or_execute(argv, "/proc/self/exe", body, {}, not_inherited);
  collapse_memory();
  return fork_or_execute(nullptr, nullptr, body, std::move(preload), not_inherited);
}

std::unique_ptr<ForkServer> ForkServer::execute(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return fork_or_execute(argv.data(), argv.front(), nullptr, {}, {});
}

std::unique_ptr<ForkServer> ForkServer::fork_or_execute(char** argv, const char* program, WorkerBody body,
                                                        std::function<void()> preload,
                                                        const std::vector<int>& not_inherited) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw EngineError("cannot make the fork server's socket: " + base::last_system_error());
  }
  base::FileDescriptor ours(sockets[0]);
  base::FileDescriptor theirs(sockets[1]);
  auto table = std::make_unique<WorkerTable>();
  Execution execution = prepare_execution(theirs.get(), table->fd());
  const pid_t controller = ::getpid();
  std::fflush(nullptr);  // otherwise the server would write it again
  std::cout.flush();
  const sigset_t before = block_outside_signals();  // so that the server starts with them blocked
  const pid_t server = ::fork();
  if (server != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (server < 0) throw EngineError("cannot fork the fork server: " + base::last_system_error());
  if (server == 0 && program != nullptr) {
    keep_when_executed(theirs.get());
    keep_when_executed(table->fd());
    ::execvpe(program, argv, execution.environment.data());
    ::_exit(127);
  }
  if (server == 0) {
    for (const int descriptor : not_inherited) ::close(descriptor);
    ours.reset();
    run_fork_server({std::move(theirs), table.get(), controller, body, std::move(preload)});
  }
  return std::unique_ptr<ForkServer>(new ForkServer(server, std::move(ours), std::move(table)));
}

void ForkServer::run_if_executed(WorkerBody body, std::function<void()> preload, ServerInput input) {
  const char* const mark = std::getenv(mark_name);
  if (mark == nullptr) return;
  int control = -1;
  int table_fd = -1;
  pid_t controller = 0;
  const int read = std::sscanf(mark, "%d,%d,%d", &control, &table_fd, &controller);
  ::unsetenv(mark_name);
  if (read != 3 || !is_packet_socket(control)) return;  // inherited from another program
  if (controller != ::getppid()) ::_exit(0);            // do not run the whole program again as a controller
  ::fcntl(control, F_SETFD, FD_CLOEXEC);
  ::fcntl(table_fd, F_SETFD, FD_CLOEXEC);
  WorkerTable table{base::FileDescriptor(table_fd)};
  collapse_memory();
  run_fork_server({base::FileDescriptor(control), &table, controller, body, std::move(preload), std::move(input)});
}

ForkServer::ForkServer(pid_t server, base::FileDescriptor control, std::unique_ptr<WorkerTable> table)
    : ForkServerConnection(std::move(control)), owner_(::getpid()), server_(server), table_(std::move(table)) {}

ForkServer::~ForkServer() {
  if (::getpid() != owner_ || gone()) return;  // a forked child of the controller must not end the server
  send({.kind = Request::Kind::quit});
  ::shutdown(control(), SHUT_RDWR);
  const base::FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, server_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + server_end_patience;
  std::chrono::milliseconds left = server_end_patience;
  while (process && ::poll(&ended, 1, static_cast<int>(left.count())) < 0 && errno == EINTR) {
    left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    left = std::max(left, std::chrono::milliseconds::zero());
  }
  ::waitpid(server_, nullptr, WNOHANG);
}

std::string ForkServer::why_gone() const { return child_reason(server_); }

void ForkServer::kill_groups() const {
  for (const pid_t process : table_->processes()) ::kill(-process, SIGKILL);
}

std::unique_ptr<ForkServerConnection> ForkServerConnection::connect() const {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    throw EngineError("cannot make a socket for the fork server: " + base::last_system_error());
  auto further = std::make_unique<ForkServerConnection>(base::FileDescriptor(sockets[0]));
  Request request{.kind = Request::Kind::connect};
  if (!send_with(control_.get(), request, base::FileDescriptor(sockets[1])))
    throw EngineError("cannot connect to the fork server: " + base::last_system_error());
  return further;
}

std::uint64_t ForkServerConnection::spawn(const WorkerSpec& spec, int threads, const base::FileDescriptor& connection) {
  if (gone_) throw_gone();
  Request request{.kind = Request::Kind::spawn,
                  .threads = threads,
                  .worker = ++last_worker_,
                  .starts_workers = spec.starts_workers,
                  .memory_bytes = spec.memory_bytes};
  const std::string& path = spec.directory.native();
  if (path.size() >= sizeof request.directory) throw EngineError("a worker's directory is too long: " + path);
  path.copy(request.directory, path.size());
  if (!send_with(control_.get(), request, connection)) {
    const std::string reason = base::last_system_error();
    while (auto ended = read_ended()) early_.push_back(std::move(*ended));
    if (gone_) throw_gone();
    throw EngineError("cannot ask the fork server for a worker: " + reason);
  }
  return request.worker;
}

void ForkServerConnection::kill(std::uint64_t worker) { send({.kind = Request::Kind::kill, .worker = worker}); }

void ForkServerConnection::end_disconnected(std::uint64_t worker) {
  send({.kind = Request::Kind::end_disconnected, .worker = worker});
}

void ForkServerConnection::send(const Request& request) {
  send_despite_signals([&] { return ::send(control_.get(), &request, offsetof(Request, directory), MSG_NOSIGNAL); });
}

std::optional<ForkServerConnection::Ended> ForkServerConnection::next_ended() {
  if (early_.empty()) return read_ended();
  Ended ended = std::move(early_.front());
  early_.pop_front();
  return ended;
}

std::optional<ForkServerConnection::Ended> ForkServerConnection::read_ended() {
  while (!gone_) {
    Notice notice;
    const ssize_t got = ::recv(control_.get(), &notice, sizeof notice, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    // ECONNRESET is returned once, before the notices that arrived ahead of it.
    if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (got <= 0) {
      note_end();
    } else if (notice.kind == Notice::Kind::server_failed) {
      reason_ = notice.detail;
    } else {
      const auto kind = notice.kind == Notice::Kind::code     ? Exit::Kind::code
                        : notice.kind == Notice::Kind::signal ? Exit::Kind::signal
                                                              : Exit::Kind::not_started;
      return Ended{notice.worker, {kind, notice.value, notice.detail}};
    }
  }
  return std::nullopt;
}

void ForkServerConnection::note_end() {
  if (std::exchange(gone_, true)) return;
  const std::string ended = why_gone();
  if (reason_.empty()) reason_ = ended;
}

void ForkServerConnection::throw_gone() const {
  throw EngineError("no worker can be started: " + reason_ + ". Its workers ended with it; start the program again");
}

bool ForkServerConnection::claim() { return !claimed_.exchange(true); }

}  // namespace cadre::engine::local
