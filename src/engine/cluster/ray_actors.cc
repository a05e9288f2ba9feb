#include "engine/cluster/ray_actors.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/cut_text.h"
#include "base/retry_delay.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "engine/cluster/shell.h"

namespace cadre::engine::cluster {
namespace {

using std::chrono::seconds;

constexpr auto kTimeToConnect = seconds(120);  // Ray itself gives up after a minute
constexpr auto kTimeToExit = seconds(10);      // for a launcher that has closed its socket
constexpr auto kWritePause = std::chrono::milliseconds(20);
constexpr std::size_t kMostShownOfLine = 200;

std::chrono::steady_clock::duration launcher_retry_delay(std::int64_t failures) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(1 + base::retry_delay_s(failures)));
}

// Returns a connection to the socket of a launcher that runs; none if there is none, or if it is another process's.
base::FileDescriptor connect_to_launcher(std::int64_t launcher) {
  base::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string name = ray::socket_name(launcher);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  const bool is_it = socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 &&
                     peer.uid == ::getuid() && peer.pid == launcher;
  return is_it ? std::move(socket) : base::FileDescriptor();
}

}  // namespace

RayActors::RayActors(Variables own) : own_(std::move(own)) {}

// ---- Requests

void RayActors::request(const NodeRequest& request, const AgentStart& start) {
  std::string faults = ray::faults_of(request);
  if (start.over_stdio)
    faults += (faults.empty() ? "" : "; ") + std::string("an actor of Ray has no input and output here");
  if (!faults.empty()) {
    events_.emplace_back(Refused{.request = request.id, .reason = faults});
    return;
  }
  Request& made = requests_[request.id];
  made.asked = request;
  made.start = start;
  for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) made.places[ordinal] = {};
  submit(made);
}

void RayActors::submit(Request& request) {
  try {
    request.launcher = &launcher_for(request);
  } catch (const EngineError& error) {
    const std::string why =
        fmt::format("{}; Ray needs a Python that has it: name one in the option \"python\" of the group", error.what());
    if (has_been_ready_) return try_again(request, why);
    events_.emplace_back(Refused{.request = request.asked.id, .reason = why});
    request.places.clear();
    return;
  }
  std::vector<std::int64_t> ordinals;
  for (const auto& [ordinal, place] : request.places) ordinals.push_back(ordinal);
  request.launcher->out += ray::request_line(request.asked, ordinals, request.start, own_);
  write(*request.launcher);
}

void RayActors::try_again(Request& request, const std::string& why) {
  request.launcher = nullptr;
  request.next_try = Clock::now() + launcher_retry_delay(failures_);
  events_.emplace_back(Queued{.request = request.asked.id, .reason = why});
}

RayActors::Launcher& RayActors::launcher_for(const Request& request) {
  const ray::LauncherKind kind = ray::launcher_kind(request.asked, request.start);
  for (const auto& launcher : launchers_) {
    if (launcher->kind == kind && launcher->socket && launcher->failure.empty()) return *launcher;
  }
  Variables variables = own_;
  variables[ray::kMarkVariable] = request.start.mark;
  auto launcher = std::make_unique<Launcher>(
      Launcher{.kind = kind, .mark = request.start.mark, .killed_at = Clock::now() + kTimeToConnect});
  launcher->command = std::make_unique<Command>(CommandStart{.arguments = ray::launcher_command(kind),
                                                             .environment = as_environment(variables),
                                                             .directory = "/",
                                                             .carries_session = true,
                                                             .death_signal = kind.outlives ? 0 : SIGKILL});
  launcher->socket = launcher->command->take_session();
  launchers_.push_back(std::move(launcher));
  return *launchers_.back();
}

void RayActors::release(std::uint64_t request) {
  Request* const found = find(request);
  if (found == nullptr) return;
  std::vector<std::int64_t> ordinals;
  for (const auto& [ordinal, place] : found->places) ordinals.push_back(ordinal);
  for (const std::int64_t ordinal : ordinals) release(*found, ordinal);
}

void RayActors::release(std::uint64_t request, std::int64_t ordinal) {
  Request* const found = find(request);
  if (found != nullptr && found->places.contains(ordinal)) release(*found, ordinal);
}

void RayActors::release(Request& request, std::int64_t ordinal) {
  if (std::exchange(request.places.at(ordinal).is_released, true)) return;
  if (request.launcher == nullptr) return end(request.asked.id, ordinal, "given back", true);
  request.launcher->out += ray::release_line(request.asked.id, ordinal);
  write(*request.launcher);
}

RayActors::Request* RayActors::find(std::uint64_t request) {
  const auto found = requests_.find(request);
  return found == requests_.end() ? nullptr : &found->second;
}

void RayActors::end(std::uint64_t request, std::int64_t ordinal, std::string reason, bool is_certain) {
  Request* const found = find(request);
  if (found == nullptr || found->places.erase(ordinal) == 0) return;
  events_.emplace_back(
      AgentEnded{.request = request, .ordinal = ordinal, .reason = std::move(reason), .is_certain = is_certain});
}

bool RayActors::is_giving_back() const {
  const auto gives_back = [](const auto& launcher) {
    return launcher->says_what_it_has || !launcher->unclaimed.empty();
  };
  const auto is_released = [](const auto& place) { return place.second.is_released; };
  return std::ranges::any_of(launchers_, gives_back) || std::ranges::any_of(requests_, [&](const auto& entry) {
           return std::ranges::any_of(entry.second.places, is_released);
         });
}

// ---- What outlives a process

void RayActors::claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) {
  std::map<std::uint64_t, const NodeProcess*> found;
  for (const NodeProcess& process : processes) found[process.request] = &process;
  std::map<std::int64_t, Launcher*> taken_over;  // by process; nullptr: it cannot be
  for (const auto& [request, gone] : requests) {
    Request& claimed = requests_[request.id];
    claimed.asked = request;
    claimed.is_claimed = true;
    for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
      if (!gone.contains(ordinal)) claimed.places[ordinal] = {};
    }
    if (const auto process = found.find(request.id); process != found.end()) {
      const auto [launcher, is_new] = taken_over.emplace(process->second->pid, nullptr);
      if (is_new) {
        if (std::unique_ptr<Launcher> made = take_over(*process->second)) {
          made->kind = ray::launcher_kind(request, {});
          made->kind.outlives = true;
          launcher->second = launchers_.emplace_back(std::move(made)).get();
        }
      }
      claimed.launcher = launcher->second;
    }
    if (claimed.launcher != nullptr) continue;
    const std::map<std::int64_t, Place> places = claimed.places;
    for (const auto& [ordinal, place] : places) end(request.id, ordinal, "its launcher has ended", false);
  }
  for (const NodeProcess& process : processes) {  // of those that nobody claims, all nodes end
    if (!taken_over.contains(process.pid)) Command::take_over(static_cast<::pid_t>(process.pid), process.mark);
  }
}

// One that cannot be talked to is killed, and its actors end.
std::unique_ptr<RayActors::Launcher> RayActors::take_over(const NodeProcess& process) {
  auto launcher = std::make_unique<Launcher>(
      Launcher{.mark = process.mark, .says_what_it_has = true, .killed_at = Clock::now() + kTimeToConnect});
  launcher->command = Command::take_over(static_cast<::pid_t>(process.pid), process.mark);
  if (!launcher->command) return nullptr;
  launcher->socket = connect_to_launcher(process.pid);
  if (!launcher->socket) return nullptr;
  launcher->out = ray::continue_line(process.mark);
  write(*launcher);
  return launcher;
}

std::vector<NodeProcess> RayActors::processes() const {
  std::vector<NodeProcess> all;
  for (const auto& [id, request] : requests_) {
    const bool is_wanted =
        std::ranges::any_of(request.places, [](const auto& place) { return !place.second.is_released; });
    if (request.launcher != nullptr && is_wanted && !request.launcher->mark.empty())
      all.push_back({.request = id, .pid = request.launcher->command->process(), .mark = request.launcher->mark});
  }
  return all;
}

// ---- Launchers

void RayActors::write(Launcher& launcher) {
  while (launcher.socket && !launcher.out.empty()) {
    const ::ssize_t count =
        ::send(launcher.socket.get(), launcher.out.data(), launcher.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) launcher.out.clear();  // it has ended, which reading says
    if (count < 0) return;
    launcher.out.erase(0, static_cast<std::size_t>(count));
  }
}

void RayActors::read(Launcher& launcher) {
  std::array<char, 65536> buffer;
  while (launcher.socket) {
    const ::ssize_t count = ::recv(launcher.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      launcher.in.append(buffer.data(), static_cast<std::size_t>(count));
      read_lines(launcher);
    } else if (count < 0 && errno == EAGAIN) {
      return;
    } else if (count == 0 || errno != EINTR) {
      launcher.socket.reset();
      launcher.killed_at = Clock::now() + kTimeToExit;
    }
  }
}

void RayActors::read_lines(Launcher& launcher) {
  for (std::size_t end = launcher.in.find('\n'); end != std::string::npos && launcher.failure.empty();
       end = launcher.in.find('\n')) {
    const std::string line = launcher.in.substr(0, end);
    launcher.in.erase(0, end + 1);
    try {
      std::visit([&](const auto& said) { hear(launcher, said); }, ray::parse_said(line, Clock::now()));
    } catch (const Error&) {
      give_up(launcher, fmt::format("Ray's launcher says what is none of its messages: {}",
                                    base::first_bytes(line, kMostShownOfLine)));
    }
  }
  if (launcher.in.size() > ray::kMostLine)
    give_up(launcher,
            fmt::format("Ray's launcher says too much at once: {}", base::first_bytes(launcher.in, kMostShownOfLine)));
}

void RayActors::give_up(Launcher& launcher, std::string why) {
  if (launcher.failure.empty()) launcher.failure = std::move(why);
  launcher.socket.reset();
  launcher.command->kill(SIGKILL);
}

bool RayActors::look(Launcher& launcher) {
  if (Clock::now() >= launcher.killed_at) {
    launcher.killed_at = TimePoint::max();
    give_up(launcher, "Ray's launcher does not answer");
  }
  write(launcher);
  const bool has_ended = launcher.command->update();
  read(launcher);
  if (has_ended) ended(launcher);
  return !has_ended;
}

// Nodes that were not there yet are asked for again by another launcher, if they can be.
void RayActors::ended(const Launcher& launcher) {
  std::string why = launcher.failure;
  if (why.empty()) why = launcher.command->end_of("Ray's launcher", last_line(launcher.command->errors()));
  ++failures_;
  for (auto& [id, request] : requests_) {
    if (request.launcher != &launcher) continue;
    request.launcher = nullptr;
    const std::map<std::int64_t, Place> places = request.places;
    for (const auto& [ordinal, place] : places) {
      if (place.is_released) {
        end(id, ordinal, "given back", !place.has_started);
      } else if (place.has_started || request.is_claimed) {
        end(id, ordinal, why, false);
      }
    }
    if (request.places.empty()) continue;
    if (has_been_ready_) {
      try_again(request, why);
    } else {
      events_.emplace_back(Refused{.request = id, .reason = why});
      request.places.clear();
    }
  }
}

void RayActors::hear(Launcher& launcher, const ray::Ready&) {
  launcher.is_ready = has_been_ready_ = true;
  launcher.killed_at = TimePoint::max();
}

void RayActors::hear(Launcher& launcher, const ray::Failed& failed) { launcher.failure = failed.reason; }

void RayActors::hear(Launcher& launcher, const ray::Has& has) {
  launcher.says_what_it_has = false;
  const std::set<ray::Node> there(has.places.begin(), has.places.end());
  for (auto& [id, request] : requests_) {
    if (request.launcher != &launcher || !request.is_claimed) continue;
    const std::map<std::int64_t, Place> places = request.places;
    for (const auto& [ordinal, place] : places) {
      if (!there.contains({id, ordinal})) end(id, ordinal, "it has ended meanwhile", false);
    }
  }
  for (const auto& [id, ordinal] : there) {
    const Request* const request = find(id);
    if (request != nullptr && request->places.contains(ordinal)) continue;
    launcher.unclaimed.emplace(id, ordinal);
    launcher.out += ray::release_line(id, ordinal);
  }
}

void RayActors::hear(Launcher&, const ray::Started& started) {
  failures_ = 0;
  Request* const request = find(started.place.first);
  if (request == nullptr) return;
  const auto place = request->places.find(started.place.second);
  if (place != request->places.end()) place->second.has_started = true;
}

void RayActors::hear(Launcher&, const Queued& queued) {
  if (find(queued.request) != nullptr) events_.emplace_back(queued);
}

void RayActors::hear(Launcher&, const Refused& refused) {
  Request* const request = find(refused.request);
  if (request == nullptr) return;
  request->places.clear();
  events_.emplace_back(refused);
}

void RayActors::hear(Launcher& launcher, const AgentEnded& ended) {
  launcher.unclaimed.erase({ended.request, *ended.ordinal});
  end(ended.request, *ended.ordinal, ended.reason, ended.is_certain);
}

void RayActors::hear(Launcher&, const NodeEnds& ends) {
  if (find(ends.request) != nullptr) events_.emplace_back(ends);
}

void RayActors::look_soon() {
  for (const auto& launcher : launchers_) {
    if (launcher->is_ready && launcher->out.empty()) launcher->out += ray::look_line();
  }
}

std::vector<ProviderEvent> RayActors::take_events() {
  std::erase_if(launchers_, [&](const std::unique_ptr<Launcher>& launcher) { return !look(*launcher); });
  for (auto& [id, request] : requests_) {
    if (request.launcher == nullptr && !request.places.empty() && Clock::now() >= request.next_try) submit(request);
  }
  std::erase_if(requests_, [](const auto& entry) { return entry.second.places.empty(); });
  return std::exchange(events_, {});
}

std::optional<RayActors::TimePoint> RayActors::next_look() const {
  if (!events_.empty()) return Clock::now();
  TimePoint next = TimePoint::max();
  for (const auto& launcher : launchers_) {
    next = std::min(next, launcher->killed_at);
    if (launcher->socket && !launcher->out.empty()) next = std::min(next, Clock::now() + kWritePause);
  }
  for (const auto& [id, request] : requests_) {
    if (request.launcher == nullptr) next = std::min(next, request.next_try);
  }
  if (next == TimePoint::max()) return std::nullopt;
  return next;
}

std::vector<int> RayActors::fds() const {
  std::vector<int> all;
  for (const auto& launcher : launchers_) {
    if (launcher->socket) all.push_back(launcher->socket.get());
    for (const int descriptor : launcher->command->fds()) all.push_back(descriptor);
  }
  return all;
}

}  // namespace cadre::engine::cluster
