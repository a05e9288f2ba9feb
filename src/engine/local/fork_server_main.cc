#include "engine/local/fork_server_main.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/library_threads.h"
#include "base/system_error.h"
#include "engine/local/fork_protocol.h"
#include "engine/local/group_watcher.h"
#include "engine/local/oom_kills.h"
#include "engine/local/outside_signals.h"
#include "engine/local/process_stat.h"
#include "engine/local/worker_setup.h"

namespace cadre::engine::local {
namespace {

using Clock = std::chrono::steady_clock;

// Longest delay of a worker's end by processes of its group that do not end (stuck in the kernel).
constexpr auto group_patience = std::chrono::seconds(1);
// Longest wait at the server's end for processes that are stuck in the kernel.
constexpr auto end_patience = std::chrono::seconds(10);
constexpr int group_interval_ms = 10;
// A signal to every process of a job reaches all of them within this time.
constexpr auto broadcast_time = std::chrono::seconds(1);
// Maximum age of a count: reading /proc/vmstat takes a third of the time of a fork.
constexpr auto oom_kills_age = std::chrono::seconds(1);

// Returns the children of this process, for kernels that do not list them: all processes of the machine are looked at.
std::vector<pid_t> children_among_all() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    const std::optional<ProcessStat> stat = read_process_stat(entry.path());
    if (stat && stat->parent == ::getpid()) found.push_back(process);
  }
  return found;
}

// Returns the children of this process. Some may be missing while others end (proc(5)): ask again when these are gone.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream list(thread.path() / "children");
    if (!list) return children_among_all();
    for (pid_t child = 0; list >> child;) found.push_back(child);
  }
  return found;
}

// Returns true if the process is known to run; false if it is exiting, gone or unknown.
bool is_running(pid_t process) {
  const std::optional<ProcessStat> stat = read_process_stat("/proc/" + std::to_string(process));
  return stat && !stat->exiting;
}

bool group_is_gone(pid_t leader) { return ::kill(-leader, 0) != 0 && errno == ESRCH; }

void set_detail(Notice& notice, const std::string& detail) {
  notice.detail[detail.copy(notice.detail, sizeof notice.detail - 1)] = 0;
}

// Returns the sockets for a worker that may start workers: the server's end and the worker's.
std::optional<std::pair<base::FileDescriptor, base::FileDescriptor>> make_client_sockets() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return std::nullopt;
  return std::pair(base::FileDescriptor(sockets[0]), base::FileDescriptor(sockets[1]));
}

class ForkServerMain {
 public:
  explicit ForkServerMain(ForkServerParts parts) : parts_(std::move(parts)) {
    clients_.emplace_back().socket = std::move(parts_.control);
  }

  void run() {
    become_server();
    preload();
    block_signals();
    while (!ending_) turn();
    end_all();
  }

 private:
  // A connection over which workers are started: that of the controller, which is the first in the list, that of a
  // worker, or a further one of either.
  struct Client {
    base::FileDescriptor socket = {};                       // empty: the client is gone
    std::unordered_map<std::uint64_t, pid_t> running = {};  // its workers, by their numbers on its connection
    std::size_t unfinished = 0;                             // its workers whose end is not reported yet
    bool lives = true;                                      // false: it can be forgotten when its workers are
    Client* opener = nullptr;                               // of a further connection: the one that it was asked for on
    std::deque<Notice> notices = {};                        // queued: a busy client must not block the server
  };
  struct Worker {
    std::uint64_t id = 0;
    std::size_t slot = 0;
    pid_t process = 0;
    std::optional<std::uint64_t> oom_kills = {};  // count at its start, or up to 1 s before
    bool killed = false;                          // on request of its starter, or because the starter is gone
    bool disconnected = false;                    // it closed its connection and went on: the reason of its kill
    int signal = 0;                               // a signal that only this worker got: the reason of its kill; 0: none
    Client* starter = nullptr;
    Client* own = nullptr;  // null unless it may start workers itself
  };
  struct Signalled {  // a worker that got a termination signal
    pid_t process = 0;
    int signal = 0;
    Clock::time_point deadline;  // until then the server may get the signal too
  };
  struct Ended {  // reaped; members of its process group, and its own workers, may still run
    Worker worker;
    Notice notice;
    Clock::time_point deadline;
  };

  void become_server();
  void preload();
  [[noreturn]] void give_up(const std::string& reason);
  void block_signals();
  void end_with_controller(int signal);
  void turn();
  int poll_timeout() const;
  void take_input();
  void take_signals();
  void look_at_signalled_workers();
  void end_signalled_workers();
  void take_requests(Client& client);
  bool receive(Client& client, Request& request, base::FileDescriptor& connection);
  void spawn(Client& client, const Request& request, base::FileDescriptor connection);
  void connect(Client& client, base::FileDescriptor socket);
  [[noreturn]] void work(const Request& request, std::size_t slot, WorkerParts parts);
  void kill(const Client& client, const Request& request);
  bool is_controller(const Client& client) const { return &client == &clients_.front(); }
  bool has_unfinished(const Client& client) const;
  void drop(Client& client);
  void forget_clients();
  std::optional<std::uint64_t> count_oom_kills(Clock::duration max_age);
  static void refuse(Client& client, const Request& request, const std::string& reason);
  void reap();
  void take_end(const Worker& worker, int status);
  const char* why_killed(const Worker& worker);
  void finish_groups();
  void send_notices(Client& client);
  void end_all();

  ForkServerParts parts_;
  base::FileDescriptor signals_;
  pid_t self_ = 0;
  std::list<Client> clients_;
  std::unordered_map<pid_t, Worker> workers_;
  std::list<Ended> ended_;
  std::vector<Signalled> signalled_;
  std::unordered_map<int, Clock::time_point> heard_;  // time when the server last got each termination signal
  std::filesystem::path oom_counter_file_ = oom_counter_file();
  std::optional<std::uint64_t> oom_kills_;
  Clock::time_point oom_kills_read_ = {};  // never read
  bool ending_ = false;
};

void ForkServerMain::become_server() {
  self_ = ::getpid();
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "cadre-server");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  end_with_controller(SIGKILL);  // until workers can run
  if (const std::string error = start_group_watcher(*parts_.table); !error.empty())
    give_up("the fork server cannot fork: " + error);
}

void ForkServerMain::end_with_controller(int signal) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parts_.controller) ::_exit(0);  // the controller ended before the line above
}

void ForkServerMain::preload() {
  std::string failure;
  try {
    if (parts_.preload) {
      prepare_for_preload();
      parts_.preload();
    }
    const std::vector<std::string> threads = other_threads();
    if (!threads.empty()) {
      failure = "the fork server has a thread beside its main one (" + threads.front() +
                "), so workers cannot be forked from it. Let the program start threads after cadre::init, and not in "
                "InitOptions::preload";
    }
  } catch (const std::exception& error) {
    failure = std::string("InitOptions::preload threw: ") + error.what();
  } catch (...) {
    failure = "InitOptions::preload threw something that is no std::exception";
  }
  std::fflush(nullptr);  // otherwise each worker would write it again
  std::cout.flush();
  prepare_for_workers();
  if (!failure.empty()) give_up(failure);
}

// Reports the reason and ends the server; used before run() enters its loop.
void ForkServerMain::give_up(const std::string& reason) {
  Notice notice{.kind = Notice::Kind::server_failed};
  set_detail(notice, reason);
  clients_.front().notices.push_back(notice);
  send_notices(clients_.front());
  ::_exit(1);
}

void ForkServerMain::block_signals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t taken;
  ::sigemptyset(&taken);
  ::sigaddset(&taken, SIGCHLD);
  ::sigaddset(&taken, attention_signal);
  for (const int signal : outside_signals) ::sigaddset(&taken, signal);
  signals_ = base::FileDescriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) give_up("the fork server cannot hear of its workers' ends: " + base::last_system_error());
  end_with_controller(SIGTERM);
}

void ForkServerMain::turn() {
  std::vector<pollfd> descriptors{{signals_.get(), POLLIN, 0}};
  for (const Client& client : clients_) {
    const short events = client.notices.empty() ? POLLIN : POLLIN | POLLOUT;
    descriptors.push_back({client.socket ? client.socket.get() : -1, events, 0});
  }
  const std::size_t end_of_clients = descriptors.size();
  if (parts_.input.fd >= 0) descriptors.push_back({parts_.input.fd, POLLIN, 0});
  const int ready = ::poll(descriptors.data(), descriptors.size(), poll_timeout());
  if (ready < 0 && errno != EINTR) ending_ = true;  // no event would ever be received again
  if (descriptors[0].revents != 0) take_signals();
  auto polled = clients_.begin();
  for (std::size_t i = 1; i < end_of_clients; ++i, ++polled) {  // new clients are at the end
    if (descriptors[i].revents & (POLLIN | POLLHUP | POLLERR)) take_requests(*polled);
  }
  if (descriptors.size() > end_of_clients && descriptors.back().revents != 0) take_input();
  if (!ended_.empty()) finish_groups();
  end_signalled_workers();
  for (Client& client : clients_) send_notices(client);
  forget_clients();
}

int ForkServerMain::poll_timeout() const { return ended_.empty() && signalled_.empty() ? -1 : group_interval_ms; }

// Lets the host load something. A failure costs speed only.
void ForkServerMain::take_input() {
  try {
    parts_.input.handle();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: the fork server loads nothing more: %s\n", error.what());
    parts_.input.fd = -1;
  }
}

void ForkServerMain::take_signals() {
  signalfd_siginfo signal;
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    // Any process may send SIGTERM, for example a batch system to all processes of a job. The controller decides
    // about it.
    if (signal.ssi_signo == SIGTERM && ::getppid() != parts_.controller) ending_ = true;
    if (is_outside_signal(static_cast<int>(signal.ssi_signo)))
      heard_[static_cast<int>(signal.ssi_signo)] = Clock::now();
    if (signal.ssi_signo == attention_signal) look_at_signalled_workers();
  }
  reap();
}

void ForkServerMain::look_at_signalled_workers() {
  for (const auto& [process, worker] : workers_) {
    if (const int signal = parts_.table->take_signal(worker.slot); signal != 0)
      signalled_.push_back({process, signal, Clock::now() + broadcast_time});
  }
}

// Ends workers whose signal the server did not get as well. A signal that the server got a little before or after was
// meant for the controller.
void ForkServerMain::end_signalled_workers() {
  std::erase_if(signalled_, [this](const Signalled& one) {
    const auto worker = workers_.find(one.process);
    if (worker == workers_.end()) return true;
    const auto heard = heard_.find(one.signal);
    if (heard != heard_.end() && heard->second >= one.deadline - 2 * broadcast_time) return true;
    if (Clock::now() < one.deadline) return false;
    worker->second.signal = one.signal;
    ::kill(-one.process, SIGKILL);
    return true;
  });
}

void ForkServerMain::take_requests(Client& client) {
  Request request;
  base::FileDescriptor connection;
  while (!ending_ && client.socket && receive(client, request, connection)) {
    switch (request.kind) {
      case Request::Kind::spawn:
        spawn(client, request, std::move(connection));
        break;
      case Request::Kind::kill:
      case Request::Kind::end_disconnected:
        kill(client, request);
        break;
      case Request::Kind::connect:
        connect(client, std::move(connection));
        break;
      case Request::Kind::quit:
        drop(client);
        break;
    }
    connection = base::FileDescriptor();
  }
}

bool ForkServerMain::receive(Client& client, Request& request, base::FileDescriptor& connection) {
  iovec part{&request, sizeof request};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = ::recvmsg(client.socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return false;
  if (got == 0) drop(client);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    connection = base::FileDescriptor(fd);
  }
  return got > 0;
}

void ForkServerMain::spawn(Client& client, const Request& request, base::FileDescriptor connection) {
  if (!connection) return refuse(client, request, "the fork server has too many open files (see ulimit -n)");
  std::pair<base::FileDescriptor, base::FileDescriptor> own;
  if (request.starts_workers) {
    auto sockets = make_client_sockets();
    if (!sockets) return refuse(client, request, "cannot make its socket: " + base::last_system_error());
    own = std::move(*sockets);
  }
  const std::optional<std::size_t> slot = parts_.table->take_slot();
  if (!slot)
    return refuse(client, request, "there are " + std::to_string(WorkerTable::max_workers) + " workers already");
  const std::optional<std::uint64_t> oom_kills = count_oom_kills(oom_kills_age);
  base::find_library_threads();
  const pid_t process = ::fork();
  if (process == 0) {
    own.first.reset();
    work(request, *slot, {std::move(connection), request.memory_bytes, std::move(own.second)});
  }
  if (process < 0) {
    refuse(client, request, "cannot fork: " + base::last_system_error());
    return parts_.table->free_slot(*slot);
  }
  ::setpgid(process, process);  // the worker does the same; either may be first
  parts_.table->set_process(*slot, process);
  Worker& worker = workers_[process] = Worker{request.worker, *slot, process, oom_kills};
  worker.starter = &client;
  if (request.starts_workers) {
    worker.own = &clients_.emplace_back();
    worker.own->socket = std::move(own.first);
  }
  client.running[request.worker] = process;
  ++client.unfinished;
}

// The requesting process sees the end of a connection that could not be passed on.
void ForkServerMain::connect(Client& client, base::FileDescriptor socket) {
  if (!socket) return;
  Client& further = clients_.emplace_back();
  further.socket = std::move(socket);
  further.opener = client.opener == nullptr ? &client : client.opener;
}

// Drops a client and kills its workers.
void ForkServerMain::drop(Client& client) {
  if (is_controller(client)) {
    ending_ = true;
    return;
  }
  client.socket.reset();
  if (client.opener != nullptr) client.lives = false;  // it has no process whose end is reported
  for (const auto& [id, process] : client.running) {
    workers_.at(process).killed = true;
    ::kill(-process, SIGKILL);
  }
}

void ForkServerMain::forget_clients() {
  clients_.remove_if(
      [](const Client& client) { return client.opener != nullptr && !client.lives && client.unfinished == 0; });
  clients_.remove_if(
      [this](const Client& client) { return client.opener == nullptr && !client.lives && !has_unfinished(client); });
}

// Returns true if workers of the client's process have not ended.
bool ForkServerMain::has_unfinished(const Client& client) const {
  return std::ranges::any_of(clients_, [&](const Client& other) {
    return (&other == &client || other.opener == &client) && other.unfinished > 0;
  });
}

void ForkServerMain::kill(const Client& client, const Request& request) {
  const auto found = client.running.find(request.worker);
  if (found == client.running.end()) return;
  const pid_t process = found->second;
  Worker& worker = workers_.at(process);
  worker.disconnected |= request.kind == Request::Kind::end_disconnected && !worker.killed && is_running(process);
  worker.killed |= request.kind == Request::Kind::kill;
  ::kill(-process, SIGKILL);
}

std::optional<std::uint64_t> ForkServerMain::count_oom_kills(Clock::duration max_age) {
  if (const auto now = Clock::now(); now - oom_kills_read_ >= max_age) {
    oom_kills_ = read_oom_kills(oom_counter_file_);
    oom_kills_read_ = now;
  }
  return oom_kills_;
}

void ForkServerMain::work(const Request& request, std::size_t slot, WorkerParts parts) {
  parts_.table->set_process(slot, ::getpid());  // the server does the same, unless it ends first
  std::vector<int> foreign{signals_.get(), parts_.table->fd()};
  for (const Client& client : clients_) {
    if (client.socket) foreign.push_back(client.socket.get());
  }
  const std::string failure = set_up_worker({.directory = request.directory,
                                             .threads = request.threads,
                                             .memory_bytes = request.memory_bytes,
                                             .server = self_,
                                             .foreign = std::move(foreign),
                                             .table = parts_.table,
                                             .slot = slot});
  if (failure.empty()) parts_.body(std::move(parts));
  parts_.table->set_setup_failure(slot, failure.empty() ? "its body returned" : failure);
  ::_exit(1);
}

void ForkServerMain::refuse(Client& client, const Request& request, const std::string& reason) {
  Notice notice{.kind = Notice::Kind::not_started, .worker = request.worker};
  set_detail(notice, reason);
  client.notices.push_back(notice);
}

void ForkServerMain::reap() {
  for (;;) {
    siginfo_t info{};
    // Kill the rest of the group while the zombie keeps the group's number from being reused.
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const auto found = workers_.find(info.si_pid);
    if (found != workers_.end()) ::kill(-info.si_pid, SIGKILL);
    int status = 0;
    if (::waitpid(info.si_pid, &status, 0) != info.si_pid || found == workers_.end()) continue;
    const Worker worker = found->second;
    workers_.erase(found);
    worker.starter->running.erase(worker.id);
    if (worker.own != nullptr) drop(*worker.own);
    take_end(worker, status);
  }
}

void ForkServerMain::take_end(const Worker& worker, int status) {
  Notice notice{.worker = worker.id};
  notice.kind = WIFSIGNALED(status) ? Notice::Kind::signal : Notice::Kind::code;
  notice.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  if (const std::string failure = parts_.table->setup_failure(worker.slot); !failure.empty()) {
    notice.kind = Notice::Kind::not_started;
    set_detail(notice, failure);
  } else if (notice.kind == Notice::Kind::signal && notice.value == SIGKILL && worker.signal != 0) {
    notice.value = worker.signal;
  } else if (notice.kind == Notice::Kind::signal && notice.value == SIGKILL) {
    set_detail(notice, why_killed(worker));
  }
  ended_.push_back({worker, notice, Clock::now() + group_patience});
}

// Returns why a worker was killed; empty if unknown or if its starter requested it.
const char* ForkServerMain::why_killed(const Worker& worker) {
  if (worker.disconnected) return "it closed its connection to the controller and went on";
  if (worker.killed || !worker.oom_kills) return "";
  // The kernel counts before it sends the signal.
  return count_oom_kills({}) > worker.oom_kills ? "out of memory: the kernel ended it (oom_kill)" : "";
}

void ForkServerMain::finish_groups() {
  std::erase_if(ended_, [this](const Ended& ended) {
    const Worker& worker = ended.worker;
    const bool gone = group_is_gone(worker.process) && (worker.own == nullptr || !has_unfinished(*worker.own));
    if (!gone && Clock::now() < ended.deadline) return false;
    parts_.table->free_slot(worker.slot);
    if (worker.own != nullptr) worker.own->lives = false;
    worker.starter->notices.push_back(ended.notice);
    --worker.starter->unfinished;
    return true;
  });
}

void ForkServerMain::send_notices(Client& client) {
  if (!client.socket) return client.notices.clear();
  while (!client.notices.empty()) {
    const Notice& notice = client.notices.front();
    const std::size_t size = offsetof(Notice, detail) + std::strlen(notice.detail) + 1;
    if (::send(client.socket.get(), &notice, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
      return drop(client);
    }
    client.notices.pop_front();
  }
}

void ForkServerMain::end_all() {
  for (const auto& [process, worker] : workers_) ::kill(-process, SIGKILL);
  // Orphans of killed children become children of this process, even from other sessions.
  for (const auto deadline = Clock::now() + end_patience; Clock::now() < deadline;) {
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
    pollfd signals{signals_.get(), POLLIN, 0};
    ::poll(&signals, 1, group_interval_ms);
    signalfd_siginfo signal;
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    }
  }
}

}  // namespace

void run_fork_server(ForkServerParts parts) {
  ForkServerMain(std::move(parts)).run();
  ::_exit(0);
}

namespace {

std::string name_in(const std::filesystem::path& task) {
  std::ifstream file(task / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// Returns a thread's name; empty if the thread has ended. A new thread has its creator's name until it sets its own,
// which takes a thread that a library has just started some time, on a busy machine possibly long: waits for it until
// `end`. A thread that waits for an event has set its name before, if it ever does.
std::optional<std::string> settled_name(const std::filesystem::path& task, Clock::time_point end) {
  const std::string inherited = name_in("/proc/self");
  for (;;) {
    const std::optional<ProcessStat> stat = read_process_stat(task);  // before the name
    if (!stat || stat->exiting) return std::nullopt;
    std::string name = name_in(task);
    const bool is_own = !name.empty() && name != inherited;
    if (is_own || stat->waits || Clock::now() >= end) return name;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::vector<std::string> other_threads() {
  constexpr auto patience = std::chrono::seconds(5);  // with all of them together
  const Clock::time_point end = Clock::now() + patience;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (std::atoi(entry.path().filename().c_str()) == ::getpid()) continue;
    const std::optional<std::string> name = settled_name(entry.path(), end);
    if (name && *name != "jemalloc_bg_thd") names.push_back(*name);  // Arrow's; jemalloc handles it in forks
  }
#if defined(__SANITIZE_THREAD__)
  if (!names.empty()) names.pop_back();  // the sanitizer's own
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  if (!names.empty()) names.pop_back();
#endif
#endif
  return names;
}

}  // namespace cadre::engine::local
