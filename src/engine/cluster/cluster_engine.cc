#include "engine/cluster/cluster_engine.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ranges>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/network.h"
#include "base/overload.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/version.h"
#include "channel/codec.h"
#include "engine/cluster/agent.h"
#include "engine/cluster/shell.h"
#include "engine/interrupts.h"

namespace cadre::engine::cluster {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostVisitors = 64;  // that have not greeted
constexpr auto kVisit = 5s;                // time for a greeting
constexpr auto kAcceptPause = 100ms;       // after a connection for which there was no descriptor
// After its connection was closed, an agent dials again within a tenth of a second, unless it knows of nothing.
constexpr auto kRedial = 2s;
constexpr auto kTimeToLook = 20s;  // for network file systems
constexpr auto kTimeToLeave = 5s;  // for agents
constexpr auto kTimeToHear = 20s;  // for those that nobody but this engine can end
constexpr auto kTimeToEnd = 10s;   // for workers
constexpr auto kTimeToGiveBack = 10s;
// Time for other nodes once the first is there: they share the work from the beginning.
constexpr Clock::duration kOthersCome = 10s;
constexpr Clock::duration kQueuedMayCome = 1s;
constexpr auto kPoolPeriod = 50ms;
constexpr auto kStuck = 1s;
// An agent that is cut off from a controller that was killed has ended its workers by then.
constexpr auto kWorkersHaveEnded = 25s;
constexpr auto kLookPeriod = 200ms;  // while the first node is awaited
constexpr auto kSilentWait = 5s;
// A signal to all processes may end agents before it comes here.
constexpr auto kSignalArrives = 100ms;
constexpr auto kLongWait = 30s;
constexpr auto kAskForLimitBefore = 10s;  // that a node is drained: its limit may have changed
constexpr int kBacklog = 1024;
// In a run's directory, while it has nodes: what agents print (AgentStart::log). Hidden, as the lock is.
constexpr const char* kLogFolder = ".agents";
constexpr std::uint64_t kMostLogRead = std::uint64_t{64} << 10;  // bytes, for its last line
// A node whose unsent messages are more is given up; each of its workers may be sent the largest one besides.
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;
constexpr std::size_t kMostKeptPieces = 100'000;

std::string token_for(const std::string& secret, std::uint64_t request) {
  return channel::tls().authenticate(secret, fmt::format("request {}", request));
}

std::string address_of_peer(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return base::ip_address(reinterpret_cast<const sockaddr&>(address));
}

// Returns what stands at the end of a log, which may have any size.
std::string end_of_log(const base::ReadableFile& log) {
  const std::uint64_t size = log.size();
  std::string end(std::min(size, kMostLogRead), '\0');
  end.resize(log.read(size - end.size(), std::as_writable_bytes(std::span(end))));
  return end;
}

// For a node whose connection has no addresses.
std::string own_address(const Hello& hello) { return hello.addresses.empty() ? hello.host : hello.addresses.front(); }

}  // namespace

ClusterEngine::ClusterEngine(std::unique_ptr<Provider> provider, ClusterOptions options)
    : provider_(std::move(provider)),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      kept_in_(options_.directory) {
  if (!wake_) throw EngineError("cannot make the engine's eventfd: " + base::last_system_error());
  poller_.watch(wake_.get(), [this] {
    std::uint64_t count = 0;
    while (::read(wake_.get(), &count, sizeof count) > 0) woken_ = true;
  });
  try {
    begin();
  } catch (...) {
    leave();
    throw;
  }
}

ClusterEngine::~ClusterEngine() { leave(); }

void ClusterEngine::begin() {
  Continuation continuation{.missing = options_.requests};
  if (options_.kept) {
    const KeptNodes& kept = *options_.kept;
    requests_.number_after(kept.last_request);
    last_node_ = kept.last_node;
    const std::string fault = take_over(kept);
    if (fault.empty()) continuation = continue_requests(kept.requests, options_.requests);
    if (!fault.empty())
      std::fprintf(stderr, "cadre: the nodes of the process before are of no use: %s; others are requested\n",
                   fault.c_str());
  }
  if (!listener_ && !options_.start.over_stdio) {
    secret_ = channel::tls().make_secret();
    identity_ = channel::tls().make_identity();
    tls_ = channel::tls().server(identity_);
    if (!listen(0)) throw EngineError("cannot open a port for the nodes' agents: " + base::last_system_error());
  }
  const Interrupts interrupts(*this);  // nodes are given back then, from the first one that is requested
  request_nodes(continuation);
  await_nodes(interrupts);
}

// Returns why this engine cannot have the nodes; empty if it can, which now listens for their agents.
std::string ClusterEngine::take_over(const KeptNodes& kept) {
  options_.owner.build = build_id();
  if (options_.start.over_stdio) return "they dial a port, and this program's nodes are to use their standard streams";
  if (std::string fault = fault_of(kept, options_.owner); !fault.empty()) return fault;
  try {
    tls_ = channel::tls().server(kept.identity);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  if (!listen(static_cast<std::uint16_t>(kept.port)))
    return fmt::format("they dial port {}: {}", kept.port, base::last_system_error());
  secret_ = kept.secret;
  identity_ = kept.identity;
  return "";
}

void ClusterEngine::leave() {
  is_leaving_ = true;
  for (auto& [id, member] : members_) dismiss(member);
  const auto is_there = [this](const auto& entry) { return may_run_on(entry.second); };
  try {
    const auto most = ends_agents_only_by_word() ? kTimeToHear : kTimeToLeave;
    for (const TimePoint until = Clock::now() + most; std::ranges::any_of(members_, is_there) && Clock::now() < until;)
      turn(until - Clock::now());
    for (const std::uint64_t request : requests_.all()) provider_->release(request);
    for (const TimePoint until = Clock::now() + kTimeToGiveBack; Clock::now() < until; turn(until - Clock::now())) {
      if (provider_->is_giving_back()) take_provider_events();
      if (!provider_->is_giving_back()) break;
    }
    if (provider_->is_giving_back())
      std::fprintf(stderr,
                   "cadre: nodes may not be given back: who has them does not answer; their agents end after %g s "
                   "without this program\n",
                   std::max<double>(options_.stays.count(), std::chrono::duration<double>(kWorkersHaveEnded).count()));
    outstanding_.empty() ? keep_in({}) : keep_outstanding();
  } catch (const Error& error) {
    std::fprintf(stderr, "cadre: nodes may not be given back: %s\n", error.what());
  }
}

// Returns true if an agent that is not told to leave stays.
bool ClusterEngine::ends_agents_only_by_word() const { return !options_.start.over_stdio && !provider_->ends_agents(); }

// Returns true if an agent has not ended, or may not know that it is to. One that has closed its connection may have
// done so because it heard nothing, as when this process was held up.
bool ClusterEngine::may_run_on(const Member& member) const {
  if (member.link->is_connected()) return true;
  return !options_.start.over_stdio && !member.has_left && !(member.has_ended && member.is_end_certain);
}

// ---- Nodes

// `port`: 0 for any. Returns false, with errno, if it cannot be had.
bool ClusterEngine::listen(std::uint16_t port) {
  constexpr int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  base::FileDescriptor listener(::socket(AF_INET6, type, 0));
  const bool is_v6 = listener || errno != EAFNOSUPPORT;  // a kernel without IPv6 has no address of it either
  if (!is_v6) listener = base::FileDescriptor(::socket(AF_INET, type, 0));
  sockaddr_storage address{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (is_v6) {
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_any;
    v6->sin6_port = htons(port);
  } else {
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_ANY);
    v4->sin_port = htons(port);
  }
  auto size = static_cast<socklen_t>(is_v6 ? sizeof *v6 : sizeof *v4);
  const int off = 0;
  const int on = 1;  // connections of a process that has ended may still be there
  const bool listens = listener &&
                       (!is_v6 || ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
                       ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       ::listen(listener.get(), kBacklog) == 0 &&
                       ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!listens) return false;
  listener_ = std::move(listener);
  port_ = ntohs(is_v6 ? v6->sin6_port : v4->sin_port);
  poller_.watch(listener_.get(), [this] { accept_visitors(); });
  return true;
}

std::vector<std::string> ClusterEngine::own_addresses() const {
  if (!options_.addresses.empty()) return options_.addresses;
  std::vector<std::string> addresses = base::outside_addresses();
  if (addresses.empty()) addresses.emplace_back("127.0.0.1");
  return addresses;
}

std::vector<Address> ClusterEngine::dialled_addresses() const {
  std::vector<Address> addresses;
  for (const std::string& host : own_addresses()) addresses.push_back({host, port_});
  return addresses;
}

void ClusterEngine::request_nodes(const Continuation& continuation) {
  std::vector<PoolGroup> groups;
  std::map<std::string, std::int64_t> later;  // nodes that are not requested at the beginning
  for (const NodeRequest& request : options_.requests) {
    const auto on_demand = options_.on_demand.find(request.group);
    const bool is_fixed = on_demand == options_.on_demand.end();
    groups.push_back({.name = request.group,
                      .least = is_fixed ? request.nodes : on_demand->second.least,
                      .most = request.nodes,
                      .linger = is_fixed ? Clock::duration(0) : on_demand->second.linger,
                      .cpus = request.cpus,
                      .gpus = static_cast<double>(request.gpus),
                      .accelerator_type = is_fixed ? "" : on_demand->second.accelerator_type,
                      .price = price_in(request.group)});
    const std::int64_t first = std::max<std::int64_t>(groups.back().least, groups.size() == 1 ? 1 : 0);
    if (!is_fixed) later[request.group] = request.nodes - first;
    wanted_ += static_cast<std::size_t>(request.nodes);
    first_ += static_cast<std::size_t>(first);
  }
  pool_ = Pool(groups);
  requests_.take_over(continuation);
  if (!kept_in_.empty() && continuation.claimed.empty()) base::remove_tree(kept_in_ / kLogFolder);
  if (options_.kept) claim(*options_.kept);
  for (const auto& [request, ordinal] : continuation.surplus) provider_->release(request, ordinal);
  for (NodeRequest request : continuation.missing) {
    if (const auto spared = later.find(request.group); spared != later.end()) request.nodes -= spared->second;
    if (request.nodes > 0) request_node(std::move(request));
  }
}

// Takes all nodes over from the process before, for the provider to say when they have ended, and gives those back that
// are of no use.
void ClusterEngine::claim(const KeptNodes& kept) {
  for (const ConnectedNode& node : kept.connected) outstanding_[{node.request, node.ordinal}] = node.name;
  if (kept.provider != options_.owner.provider) return;
  if (kept.host != options_.owner.host) {  // whose processes cannot be seen from here
    provider_->claim({}, kept.processes);
  } else {
    provider_->claim(kept.requests, kept.processes);
    for (const auto& [request, ended] : kept.requests) {
      if (!requests_.contains(request.id)) provider_->release(request.id);
    }
  }
  watch_provider();
}

void ClusterEngine::request_node(NodeRequest wanted) {
  const NodeRequest request = requests_.add(std::move(wanted));
  keep();  // before a job is there that nobody would know of
  AgentStart start = options_.start;
  AgentSettings settings{
      .request = request.id,
      .group = request.group,
      .over_stdio = start.over_stdio,
      .stays_s = ends_agents_only_by_word() ? 0 : options_.stays.count(),  // until it is told otherwise
      .ends_by_itself = options_.ends_agents};
  start.log = log_of(request.id);
  if (!start.over_stdio) {
    start.outlives = options_.stays.count() > 0;
    start.mark = token_for(secret_, request.id);
    settings.addresses = to_text(dialled_addresses());
    settings.certificate = identity_.certificate;
    settings.token = start.mark;
  }
  std::string text;
  base::append_json(text, to_stored(settings));
  start.variables[agent_variable] = text;
  provider_->request(request, start);
  accept_started_agents();
  watch_provider();
  keep();
}

// ---- What is kept

void ClusterEngine::keep_in(const std::filesystem::path& directory) {
  if (directory == kept_in_) return;
  try {
    if (!kept_in_.empty()) {
      remove_kept_nodes(kept_in_);
      base::remove_tree(kept_in_ / kLogFolder);
    }
  } catch (const StorageError& error) {
    std::fprintf(stderr, "cadre: %s\n", error.what());
  }
  kept_in_ = directory;
  keep();
  for (auto& [id, member] : members_) {
    tell_how_long_to_stay(member);
    member.link->flush(Clock::now());
  }
}

// Returns where agents print; empty if there is no place for it.
std::filesystem::path ClusterEngine::log_of(std::uint64_t request) const {
  if (kept_in_.empty()) return {};
  try {
    base::make_own_directory(kept_in_ / kLogFolder);
  } catch (const StorageError&) {
    return {};
  }
  return kept_in_ / kLogFolder / std::to_string(request);
}

// Returns why an agent has ended, with the last line that it has printed.
std::string ClusterEngine::text_of(const AgentEnded& ended) const {
  const std::string ordinal = ended.ordinal ? fmt::format("_{}", *ended.ordinal) : "";
  std::string line;
  for (const std::string& name : {fmt::format("{}{}", ended.request, ordinal), std::to_string(ended.request)}) {
    if (kept_in_.empty() || !line.empty()) continue;
    try {
      const auto file = base::ReadableFile::open(kept_in_ / kLogFolder / name, base::ReadableFile::Links::refuse);
      if (file) line = last_line(end_of_log(*file));
    } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): without it the provider's word must do
    }
  }
  return line.empty() ? ended.reason : fmt::format("{}: {}", ended.reason, line);
}

// Between runs nobody could find the nodes of a process that is killed.
void ClusterEngine::tell_how_long_to_stay(Member& member) {
  encode(Stay{kept_in_.empty() ? 0 : static_cast<double>(options_.stays.count())}, bytes_);
  member.link->send(channel::Lane::control, bytes_);
}

// Leaves to the next process which nodes may still have workers of the one before this one.
void ClusterEngine::keep_outstanding() {
  KeptNodes nodes = kept();
  nodes.requests.clear();
  nodes.processes.clear();
  write_kept_nodes(kept_in_, nodes, {});
  kept_in_.clear();
}

KeptNodes ClusterEngine::kept() const {
  KeptNodes nodes = options_.owner;
  nodes.build = build_id();
  nodes.port = port_;
  nodes.identity = identity_;
  nodes.secret = secret_;
  nodes.requests = requests_.kept();
  nodes.processes = provider_->processes();
  for (const auto& [id, member] : members_)
    nodes.connected.push_back({member.hello.request, member.hello.ordinal, member.node.name});
  for (const auto& [place, name] : outstanding_) nodes.connected.push_back({place.first, place.second, name});
  nodes.last_request = requests_.last();
  nodes.last_node = last_node_;
  return nodes;
}

void ClusterEngine::keep() {
  is_keeping_due_ = false;
  if (kept_in_.empty() || options_.stays.count() <= 0) return;
  try {
    write_kept_nodes(kept_in_, kept(), waiting());
  } catch (const StorageError& error) {
    if (!std::exchange(has_said_it_keeps_nothing_, true))
      std::fprintf(stderr, "cadre: if this process is killed, nobody finds its nodes again: %s\n", error.what());
  }
}

std::set<ClusterEngine::Place> ClusterEngine::places() const {
  std::set<Place> there;
  for (const auto& [id, member] : members_) there.insert(member.place());
  return there;
}

std::vector<WaitingNodes> ClusterEngine::waiting() const { return requests_.waiting(places()); }

void ClusterEngine::begin_run() {
  for (auto& [id, member] : members_) member.idle_since = Clock::now();
  if (usable_nodes() > 0 || !follows_demand(options_.requests.front().group)) return;
  refusal_.clear();
  const Interrupts interrupts(*this);
  if (requests_.awaited(places()).empty() && requests_.replacing(options_.requests.front().group) == 0) {
    NodeRequest first = options_.requests.front();
    first.nodes = 1;
    request_node(std::move(first));
  }
  first_ = 1;
  is_beginning_ = true;  // there is no demand yet, and what is requested must not be withdrawn
  await_nodes(interrupts);
  is_beginning_ = false;
}

// ---- What nodes see

std::filesystem::path ClusterEngine::use_nodes_that_see(const std::vector<std::filesystem::path>& files) {
  marks_.clear();
  blind_nodes_.clear();
  is_beginning_ = false;  // also if the call before has thrown, or begin_run()
  announce_usable_nodes();
  if (files.empty()) return {};
  for (const std::filesystem::path& file : files)
    marks_.push_back({file, base::checksum_of(base::read_file(file).substr(0, max_seen_bytes))});
  for (auto& [id, member] : members_) look(member);
  const auto is_awaited = [this](const auto& entry) {
    return entry.second.link->is_connected() && !entry.second.is_draining && !has_looked(entry.second);
  };
  is_beginning_ = true;
  const Interrupts interrupts(*this);  // a node may not answer for a while
  for (const TimePoint until = Clock::now() + kTimeToLook;
       std::ranges::any_of(members_, is_awaited) && Clock::now() < until && interrupts.signal() == 0;)
    turn(until - Clock::now());
  is_beginning_ = false;
  if (interrupts.signal() != 0) throw Interrupted("interrupted while nodes were asked what they see");
  announce_usable_nodes();
  choose_mark();
  return marks_.empty() ? std::filesystem::path() : marks_.front().file;
}

void ClusterEngine::choose_mark() {
  const auto is_seen_by_all = [this](const Mark& mark) { return blind_to(mark).empty(); };
  if (const auto seen = std::ranges::find_if(marks_, is_seen_by_all); seen != marks_.end()) {
    marks_ = {Mark(*seen)};
    return;
  }
  for (const Mark& mark : marks_) {
    const std::string directory = mark.file.parent_path().string();
    blind_nodes_ += blind_nodes_.empty()
                        ? fmt::format("{} is not seen by all nodes: {}", directory, blind_to(mark))
                        : fmt::format("; nor is {}, where it is published: {}", directory, blind_to(mark));
  }
  marks_.clear();
}

// Returns the nodes that do not see a file, with their reasons.
std::string ClusterEngine::blind_to(const Mark& mark) const {
  std::string blind;
  for (const auto& [id, member] : members_) {
    const auto said = member.blindness.find(mark.file);
    if (!member.is_draining && said != member.blindness.end() && !said->second.empty())
      blind += fmt::format("{}{} ({})", blind.empty() ? "" : ", ", member.node.name, said->second);
  }
  return blind;
}

void ClusterEngine::look(Member& member) {
  member.blindness.clear();
  for (const Mark& mark : marks_) {
    encode(Look{mark.file.string()}, bytes_);
    member.link->send(channel::Lane::control, bytes_);
  }
}

bool ClusterEngine::has_looked(const Member& member) const {
  return std::ranges::all_of(marks_, [&](const Mark& mark) { return member.blindness.contains(mark.file); });
}

void ClusterEngine::take(Member& member, const Saw& saw) {
  const auto mark = std::ranges::find(marks_, std::filesystem::path(saw.file), &Mark::file);
  if (mark == marks_.end()) return;
  std::string& blindness = member.blindness[mark->file];
  blindness = !saw.fault.empty() ? saw.fault : saw.checksum == mark->checksum ? "" : "another one is there";
  if (is_beginning_ || member.is_draining) return;
  if (!blindness.empty()) return dismiss_blind(member, *mark);
  if (!std::exchange(member.is_announced, true)) events_.emplace_back(NodeJoined{member.node});
}

// Another one in its place would see as little.
void ClusterEngine::dismiss_blind(Member& member, const Mark& mark) {
  const std::string reason =
      fmt::format("it does not see {}: {}", mark.file.parent_path().string(), member.blindness.at(mark.file));
  std::fprintf(stderr, "cadre: node %s is given back: %s\n", member.node.name.c_str(), reason.c_str());
  give_up_group(member.hello.request);
  if (pool_.follows_demand()) refusal_ = fmt::format("node {} was given back: {}", member.node.name, reason);
  give_back(member, "it does not see the run's directory");
}

// Asks for no other one in its place.
void ClusterEngine::give_back(Member& member, std::string reason) {
  requests_.forget(member.place());
  if (member.is_announced) events_.emplace_back(NodeDraining{member.node.id, {}, std::move(reason)});
  member.is_draining = true;
  has_pool_changed_ = true;
}

// ---- Waiting for nodes

// Returns how many nodes are there that will not leave soon.
std::size_t ClusterEngine::usable_nodes() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const auto& entry) { return !entry.second.is_draining; }));
}

// Lets these be there from the beginning, without events. Of the others nobody hears any more.
void ClusterEngine::announce_usable_nodes() {
  for (auto& [id, member] : members_) member.is_announced = !member.is_draining;
  events_.clear();
}

void ClusterEngine::await_nodes(const Interrupts& interrupts) {
  const TimePoint begin = Clock::now();
  const bool continues =
      std::ranges::any_of(outstanding_, [&](const auto& entry) { return requests_.is_taken_over(entry.first.first); });
  std::optional<TimePoint> first_came;
  std::optional<TimePoint> refused;
  std::string said;
  while (usable_nodes() < first_ || !outstanding_.empty()) {
    take_provider_events();
    if (interrupts.signal() != 0) throw Interrupted("interrupted while nodes were awaited; they are given back");
    const TimePoint now = Clock::now();
    if (!refusal_.empty() && !refused) refused = now;
    if (refused && now - *refused >= kSignalArrives)
      throw EngineError(fmt::format("a node cannot be had: {}", refusal_));
    if (now - begin >= kWorkersHaveEnded) outstanding_.clear();
    if (usable_nodes() > 0 && !first_came) first_came = now;
    const std::vector<WaitingNodes> others = waiting();
    const bool are_queued =
        std::ranges::none_of(others, [](const WaitingNodes& nodes) { return nodes.reason.empty(); });
    const auto others_come = continues ? Clock::duration(0) : are_queued ? kQueuedMayCome : kOthersCome;
    if (first_came && !refused && now - *first_came >= others_come && outstanding_.empty()) break;
    turn(refused ? kSignalArrives : kLookPeriod);
    if (const std::string text = awaited_text(Clock::now() - begin); !text.empty() && text != said) {
      std::fprintf(stderr, "cadre: %s\n", text.c_str());
      said = text;
    }
  }
  announce_usable_nodes();
  has_begun_ = true;
}

// Returns text for the user who waits; empty as long as there is nothing to say.
std::string ClusterEngine::awaited_text(Clock::duration waited) const {
  if (waited < kSilentWait) return "";
  if (usable_nodes() > 0) {
    std::string names;
    for (const auto& [place, name] : outstanding_) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "" : fmt::format("waiting until workers of the process before have ended on {}", names);
  }
  for (const WaitingNodes& nodes : waiting()) {
    if (!nodes.reason.empty()) return fmt::format("waiting for nodes: {}", nodes.reason);
  }
  if (waited < kLongWait) return "";
  if (options_.start.over_stdio)
    return "no agent has greeted yet; its session is in its standard input and output, so a program must come to "
           "cadre::init without reading its input";
  return fmt::format("no agent has connected yet; agents dial {}, which nodes must be able to reach",
                     to_text(dialled_addresses()));
}

double ClusterEngine::price_in(const std::string& group) const {
  const auto price = options_.prices.find(group);
  return price == options_.prices.end() ? 0 : price->second;
}

std::vector<Node> ClusterEngine::nodes() const {
  std::vector<Node> nodes;
  for (const auto& [id, member] : members_) {
    if (member.is_announced) nodes.push_back(member.node);
  }
  return nodes;
}

Resources ClusterEngine::resources() const {
  Resources sum{.cpus = 0};
  for (const Node& node : nodes()) {
    const Resources& more = node.resources;
    sum.cpus += more.cpus;
    sum.gpus += more.gpus;
    for (const auto& [name, amount] : more.custom) sum.custom[name] += amount;
    if (more.gpus > 0) sum.accelerator_type = more.accelerator_type;
  }
  return sum;
}

// Watches the provider's descriptors, which change whenever it does something, in a poller of their own: one that is
// closed meanwhile may be another one's number.
void ClusterEngine::watch_provider() {
  if (provider_poller_) poller_.unwatch(provider_poller_->descriptor());
  provider_poller_.emplace();
  for (const int descriptor : provider_->fds()) provider_poller_->watch(descriptor, [] {});
  poller_.watch(provider_poller_->descriptor(), [this] { take_provider_events(); });
}

void ClusterEngine::take_provider_events() {
  std::set<Place> connected;
  for (const auto& [id, member] : members_) {
    if (member.link->is_connected()) connected.insert(member.place());
  }
  provider_->note_connected(connected);
  for (const ProviderEvent& event : provider_->take_events()) {
    std::visit(base::Overload{[this](const Queued& queued) {
                                requests_.note(queued);
                                is_keeping_due_ = true;
                              },
                              [this](const Refused& refused) {
                                requests_.note(refused);
                                if (requests_.contains(refused.request)) give_up_group(refused.request);
                                cannot_have(refused.reason);
                              },
                              [this](const AgentEnded& ended) { agent_ended(ended); },
                              [this](const NodeEnds& ends) { requests_.note(ends); }},
               event);
  }
  accept_started_agents();
  watch_provider();
}

void ClusterEngine::agent_ended(const AgentEnded& ended) {
  if (ended.is_certain)
    std::erase_if(outstanding_, [&](const auto& entry) {
      const auto& [request, ordinal] = entry.first;
      return request == ended.request && (!ended.ordinal || ordinal == *ended.ordinal);
    });
  if (!requests_.contains(ended.request)) return;
  bool was_there = ended.ordinal && given_up_.erase({ended.request, *ended.ordinal}) != 0;
  for (auto& [id, member] : members_) {
    const bool is_it =
        member.hello.request == ended.request && (!ended.ordinal || member.hello.ordinal == *ended.ordinal);
    if (!is_it) continue;
    member.has_ended = was_there = true;
    member.is_end_certain = ended.is_certain;
    // Another node comes in the place of one that is there without what has started it.
    if (!ended.is_certain && !options_.start.over_stdio && member.link->is_connected() && !member.is_draining)
      drain(member, {}, ended.reason);
  }
  if (is_leaving_) return;
  is_keeping_due_ = has_pool_changed_ = true;
  if (requests_.agent_ended(ended, was_there, !has_begun_, Clock::now())) return;
  give_up_group(ended.request);
  cannot_have(has_begun_ ? fmt::format("agents have ended {} times before they connected, the last one: {}",
                                       requests_.failures(), text_of(ended))
                         : "an agent has ended: " + text_of(ended));
}

// Asks for no more nodes of a request's group, if they follow demand.
void ClusterEngine::give_up_group(std::uint64_t request) {
  const std::string& group = requests_.group_of(request);
  if (follows_demand(group)) pool_.give_up(index_of(group));
}

// Without this node the others go on; without any, wait() says so.
void ClusterEngine::cannot_have(const std::string& reason) {
  if (has_begun_ || refusal_.empty()) refusal_ = reason;  // the first is the cause of the others
  if (has_begun_) std::fprintf(stderr, "cadre: a node cannot be had any more: %s\n", reason.c_str());
}

void ClusterEngine::ask_again(TimePoint now) {
  if (no_node_comes(now)) return;  // unless the limit is extended
  for (NodeRequest& request : requests_.take_replacements(now)) {
    has_pool_changed_ = true;
    // The pool asks for more; but not while the first nodes of a run are awaited.
    const bool is_first =
        (!has_begun_ || is_beginning_) && usable_nodes() + requests_.awaited(places()).size() < first_;
    if (is_first || !follows_demand(request.group)) request_node(std::move(request));
  }
}

// ---- Nodes on demand

void ClusterEngine::set_demand(std::vector<Demand> demand) {
  pool_.set_demand(std::move(demand));
  has_pool_changed_ = true;
}

std::size_t ClusterEngine::index_of(const std::string& group) const {
  const auto found = std::ranges::find(options_.requests, group, &NodeRequest::group);
  return static_cast<std::size_t>(found - options_.requests.begin());
}

// Returns the nodes of each group, the latest of those without work first.
std::vector<PoolNodes> ClusterEngine::pool_nodes() const {
  std::map<std::string, PoolNodes> by_group;
  for (const auto& [request, ordinal] : requests_.awaited(places())) ++by_group[requests_.group_of(request)].coming;
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    const auto& [id, one] = *member;
    PoolNodes& nodes = by_group[requests_.group_of(one.hello.request)];
    if (one.is_draining) {
      if (!one.workers.empty()) ++nodes.leaving;
      continue;
    }
    ++nodes.there;
    if (one.workers.empty()) nodes.idle.emplace_back(id, one.idle_since);
  }
  std::vector<PoolNodes> all;
  for (const NodeRequest& request : options_.requests) {
    all.push_back(std::move(by_group[request.group]));
    all.back().coming += requests_.replacing(request.group);
  }
  return all;
}

// Asks for nodes that are needed, and gives back those that are not.
void ClusterEngine::follow_demand(TimePoint now) {
  if (!pool_.follows_demand() || no_node_comes(now)) return;
  const bool is_due = has_pool_changed_ && (!pool_decided_ || now - *pool_decided_ >= kPoolPeriod);
  if (!is_due && (!pool_.next() || *pool_.next() > now)) return;
  has_pool_changed_ = false;
  pool_decided_ = now;
  const std::vector<PoolOrder> orders = pool_.decide(pool_nodes(), now);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    withdraw(options_.requests[i].group, orders[i].withdraw);
    if (orders[i].request > 0) {
      NodeRequest more = options_.requests[i];
      more.nodes = orders[i].request;
      request_node(std::move(more));
    }
    for (const NodeId id : orders[i].give_back) {
      Member& member = members_.at(id);
      give_back(member, fmt::format("nothing has run there for {:.0f} s",
                                    std::chrono::duration<double>(now - member.idle_since).count()));
    }
    if (orders[i] != PoolOrder()) has_pool_changed_ = true;
  }
}

// Takes requested nodes of a group back, those first that were requested last.
void ClusterEngine::withdraw(const std::string& group, std::int64_t nodes) {
  if (nodes <= 0) return;
  for (const Place& place : std::views::reverse(requests_.awaited(places()))) {
    if (requests_.group_of(place.first) != group) continue;
    requests_.withdraw(place);
    provider_->release(place.first, place.second);
    is_keeping_due_ = true;
    if (--nodes == 0) return;
  }
}

// Returns true if a node may still come.
bool ClusterEngine::has_hope() const { return requests_.has_hope(places()) || pool_.may_ask(); }

// Returns true if nothing runs, and what waits is not to have a node any more.
bool ClusterEngine::is_stuck() const {
  return !refusal_.empty() && workers_.empty() && (members_.empty() || pool_.has_demand()) && !has_hope();
}

// ---- Connections

void ClusterEngine::accept_visitors() {
  for (;;) {
    base::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Without free descriptors or memory, those who wait keep the port ready.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        poller_.unwatch(listener_.get());
        accepts_again_ = Clock::now() + kAcceptPause;
      }
      return;
    }
    if (visitors_.size() >= kMostVisitors) continue;  // agents dial again
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int descriptor = socket.get();
    visitors_[descriptor] = {.stream = tls_->open(std::move(socket)), .until = Clock::now() + kVisit};
    poller_.watch(descriptor, [this, descriptor] { read_from_visitor(descriptor); });
  }
}

// Agents in whose standard input and output the session is are there before they greet: when depends on who starts
// them.
void ClusterEngine::accept_started_agents() {
  for (AgentConnection& connection : provider_->take_connections()) {
    const int descriptor = connection.socket.get();
    visitors_[descriptor] = {.stream = std::make_unique<channel::SocketStream>(std::move(connection.socket)),
                             .until = TimePoint::max(),
                             .noise = MarkSearch(),
                             .place = {{connection.request, connection.ordinal}}};
    poller_.watch(descriptor, [this, descriptor] { read_from_visitor(descriptor); });
  }
}

void ClusterEngine::refuse_started_agent(const Visitor& visitor, const std::string& reason) {
  if (!visitor.place || is_leaving_) return;
  cannot_have("an agent cannot be understood: " + reason);
  provider_->release(visitor.place->first, visitor.place->second);
}

void ClusterEngine::read_from_visitor(int descriptor) {
  Visitor& visitor = visitors_.at(descriptor);
  std::array<std::byte, 4096> space;
  try {
    while (const std::size_t count = visitor.stream->read(space)) {
      visitor.in.insert(visitor.in.end(), space.begin(), space.begin() + static_cast<std::ptrdiff_t>(count));
      if (visitor.noise && !visitor.noise->take(visitor.in)) continue;
      visitor.noise.reset();
      if (const auto hello = take_hello(visitor.in)) {
        poller_.unwatch(descriptor);
        Visitor leaving = std::move(visitor);
        visitors_.erase(descriptor);
        return admit(std::move(leaving), *hello);
      }
    }
    poller_.watch_writing(descriptor, visitor.stream->waits_to_write());
  } catch (const Error& error) {  // somebody else, or an agent that dials again; or one that ends, or cannot be heard
    poller_.unwatch(descriptor);
    const auto leaving = visitors_.extract(descriptor);
    if (!leaving.empty() && dynamic_cast<const channel::ProtocolError*>(&error) != nullptr)
      refuse_started_agent(leaving.mapped(), error.what());
  }
}

void ClusterEngine::admit(Visitor visitor, const Hello& hello) {
  const Welcome welcome = judge(visitor, hello);
  Member* member = find_member(hello.request, hello.ordinal);
  // It ends when it reads that it is refused.
  if (is_leaving_ && !welcome.refusal.empty() && member != nullptr && member->hello.pid == hello.pid)
    member->has_left = true;
  channel::Bytes bytes;
  append(bytes, welcome);
  try {
    // It fits into the buffer of a socket that nothing was written to.
    if (visitor.stream->write(bytes) != bytes.size()) return;
  } catch (const channel::StreamEnded&) {
    return;
  }
  if (!welcome.refusal.empty() || welcome.is_over) return;
  if (member != nullptr && member->hello.session != hello.session) {
    give_up(member->node.id, "its agent has ended its workers");
    member = nullptr;
  }
  const std::string address = visitor.place ? own_address(hello) : address_of_peer(visitor.stream->descriptor());
  if (member == nullptr) {
    member = &join(hello);
    member->node.address = address;
    if (marks_.empty()) {
      events_.emplace_back(NodeJoined{member->node});
    } else {
      member->is_announced = false;
      look(*member);
    }
  }
  member->is_asked_about = false;
  member->link->connect(std::move(visitor.stream), visitor.in, Clock::now());
}

// Whoever has started an agent has given it its standard streams: it needs no token.
bool ClusterEngine::has_right(const Visitor& visitor, const Hello& hello) const {
  if (!requests_.contains(hello.request)) return false;
  if (visitor.place) return *visitor.place == std::pair(hello.request, hello.ordinal);
  return channel::same_secret(hello.token, token_for(secret_, hello.request));
}

Welcome ClusterEngine::judge(const Visitor& visitor, const Hello& hello) const {
  if (hello.protocol != protocol_version)
    return {.refusal = fmt::format("it speaks version {} of the protocol of agents, and the controller version {}; "
                                   "install the same Cadre on all nodes",
                                   hello.protocol, protocol_version)};
  if (!has_right(visitor, hello)) return {.refusal = "its token is not one of this experiment"};
  if (requests_.is_surplus({hello.request, hello.ordinal})) return {.refusal = "its node is wanted no longer"};
  if (hello.build != build_id())
    return {.refusal = fmt::format("{} has another build of the program than the controller ({} of Cadre {}, and {} of "
                                   "Cadre {}); the program's path must lead to the same file on all nodes",
                                   hello.host, hello.build, hello.version, build_id(), version())};
  const auto is_same_session = [&](const auto& entry) { return entry.second.hello.session == hello.session; };
  const bool is_known = std::ranges::any_of(members_, is_same_session);
  if (is_leaving_ && !is_known) return {.refusal = "the program has ended"};
  if (hello.continues && !is_known) return {.is_over = true};
  for (const auto& [id, member] : members_) {
    const bool is_same_place = member.hello.request == hello.request && member.hello.ordinal == hello.ordinal;
    if (is_same_place && member.hello.pid != hello.pid && member.link->is_connected())
      return {.refusal = fmt::format("another agent has its place, on {}", member.hello.host)};
  }
  return {};
}

ClusterEngine::Member& ClusterEngine::join(const Hello& hello) {
  const NodeId id = ++last_node_;
  outstanding_.erase({hello.request, hello.ordinal});
  is_keeping_due_ = true;
  requests_.agent_connected();
  Member& member = members_[id];
  member.joined = member.idle_since = Clock::now();
  has_pool_changed_ = true;
  pool_.saw(index_of(requests_.group_of(hello.request)), hello.resources);
  if (!first_joined_) first_joined_ = member.joined;
  member.hello = hello;
  member.hello.token.clear();
  member.node = {.id = id,
                 .name = hello.host,
                 .resources = hello.resources,
                 .gpu_names = hello.gpu_names,
                 .price = price_in(requests_.group_of(hello.request))};
  channel::Link::Times times;
  if (options_.start.over_stdio) times = {.silence = options_.patience, .mute_after = mute_after};
  member.link = std::make_unique<channel::Link>(
      poller_, hello.session, [this, id](channel::LaneMessage&& message) { take(id, message); }, times);
  tell_how_long_to_stay(member);
  return member;
}

ClusterEngine::Member* ClusterEngine::find_member(std::uint64_t request, std::int64_t ordinal) {
  for (auto& [id, member] : members_) {
    if (member.hello.request == request && member.hello.ordinal == ordinal) return &member;
  }
  return nullptr;
}

// ---- Messages

ClusterEngine::Member* ClusterEngine::member_of(WorkerId worker) {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &members_.at(found->second);
}

void ClusterEngine::start(WorkerId worker, const WorkerSpec& spec) {
  const auto found = members_.find(spec.node);
  if (found == members_.end()) {
    events_.emplace_back(Exited{worker, {Exit::Kind::node_lost, 0, "its node has left before it was started"}});
    return;
  }
  encode_start(worker, spec, bytes_);
  found->second.link->send(channel::Lane::control, bytes_);
  if (found->second.workers.empty()) has_pool_changed_ = true;
  found->second.workers.insert(worker);
  workers_[worker] = spec.node;
}

template <class Message>
void ClusterEngine::tell(WorkerId worker, const Message& message) {
  Member* const member = member_of(worker);
  if (member == nullptr) return;
  expects_soon_ = true;
  encode_tell(worker, message, bytes_);
  member->link->send(channel::Lane::control, bytes_);
  if (bytes_.size() > channel::max_idle_bytes) channel::Bytes().swap(bytes_);
}

void ClusterEngine::answer(WorkerId worker, const channel::Answer& answer) { tell(worker, answer); }
void ClusterEngine::reply(WorkerId worker, const channel::StoreReply& reply) { tell(worker, reply); }
void ClusterEngine::reply(WorkerId worker, const channel::Reply& reply) { tell(worker, reply); }

void ClusterEngine::kill(WorkerId worker) {
  Member* const member = member_of(worker);
  if (member == nullptr) return;
  encode(Kill{worker}, bytes_);
  member->link->send(channel::Lane::control, bytes_);
}

void ClusterEngine::end_workers() {
  std::vector<WorkerId> running;
  for (const auto& [worker, node] : workers_) running.push_back(worker);
  for (const WorkerId worker : running) kill(worker);
  for (const TimePoint until = Clock::now() + kTimeToEnd; !workers_.empty() && Clock::now() < until;)
    turn(until - Clock::now());
  events_.clear();
}

void ClusterEngine::take(NodeId node, const channel::LaneMessage& message) {
  Member& member = members_.at(node);
  ToController content = decode_to_controller(message.content);
  std::visit([&](auto& one) { take(member, one); }, content);
}

void ClusterEngine::take(Member& member, const Told& told) {
  if (!member.workers.contains(told.worker) || faults_.contains(told.worker)) return;
  try {
    events_.emplace_back(Received{told.worker, channel::decode_message(told.body)});
  } catch (const channel::ProtocolError& error) {
    faults_[told.worker] = error.what();
    kill(told.worker);
  }
}

void ClusterEngine::take(Member& member, Exited& exited) {
  if (member.workers.erase(exited.worker) == 0) return;
  workers_.erase(exited.worker);
  if (member.workers.empty()) {
    member.idle_since = Clock::now();
    has_pool_changed_ = true;
  }
  if (const auto fault = faults_.extract(exited.worker)) exited.exit.detail = fault.mapped();
  events_.emplace_back(std::move(exited));
}

template <class OfFiles>
void ClusterEngine::take(Member& member, const OfFiles& message) {
  if (file_peer_ != nullptr) file_peer_->arrived(member.node.id, message);
}

std::filesystem::path ClusterEngine::own_directory_of(NodeId node) const {
  const auto found = members_.find(node);
  return found == members_.end() ? std::filesystem::path() : std::filesystem::path(found->second.hello.own_directory);
}

bool ClusterEngine::has_room(NodeId node) const {
  const auto found = members_.find(node);
  return found != members_.end() && found->second.link->is_connected() &&
         found->second.link->kept_bytes() < most_waiting_bytes;
}

void ClusterEngine::send(NodeId node, const Piece& piece) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  encode_to_agent(piece, bytes_);
  found->second.link->send(channel::Lane::control, bytes_);
}

template <class Message>
void ClusterEngine::send(NodeId node, const Message& message) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  encode(message, bytes_);
  found->second.link->send(channel::Lane::control, bytes_);
}
template void ClusterEngine::send(NodeId, const Fetch&);
template void ClusterEngine::send(NodeId, const Move&);
template void ClusterEngine::send(NodeId, const Drop&);
template void ClusterEngine::send(NodeId, const UseStorage&);
template void ClusterEngine::send(NodeId, const StoreFiles&);
template void ClusterEngine::send(NodeId, const LoadFiles&);

void ClusterEngine::take(Member& member, const Left&) { member.has_left = true; }

void ClusterEngine::take(Member& member, Draining& draining) {
  if (!member.is_draining) drain(member, draining.seconds_left, std::move(draining.reason));
}

// Another node is asked for at once: it may be queued for a while.
void ClusterEngine::drain(Member& member, std::optional<double> seconds_left, std::string reason) {
  member.is_draining = true;
  has_pool_changed_ = true;
  if (member.is_announced) events_.emplace_back(NodeDraining{member.node.id, seconds_left, std::move(reason)});
  if (!is_leaving_) requests_.replace(member.place(), Clock::now());
}

// ---- Time

void ClusterEngine::give_up(NodeId node, const std::string& reason) {
  const auto found = members_.find(node);
  is_keeping_due_ = has_pool_changed_ = true;
  for (const WorkerId worker : found->second.workers) {
    workers_.erase(worker);
    faults_.erase(worker);
    events_.emplace_back(Exited{worker, {Exit::Kind::node_lost, 0, reason}});
  }
  if (found->second.is_announced) events_.emplace_back(NodeLeft{node, reason});
  const Hello hello = std::move(found->second.hello);
  members_.erase(found);
  // Its agent cannot come back, and what has started it may not know.
  if (!options_.start.over_stdio) return;
  given_up_.emplace(hello.request, hello.ordinal);
  provider_->release(hello.request, hello.ordinal);
}

// Returns when the node is given up unless it connects again; empty while it is connected.
std::optional<ClusterEngine::TimePoint> ClusterEngine::given_up_at(const Member& member) const {
  const auto& broken = member.link->broken();
  if (!broken || is_leaving_) return std::nullopt;  // leave() has a time of its own
  if (options_.start.over_stdio) {
    if (member.workers.empty() || (member.has_ended && member.is_end_certain)) return broken->at;
    return std::min(broken->at + unheard_end, broken->last_heard + options_.patience);
  }
  // A connection that was closed says nothing about the node's workers, nor does a provider about a node that is
  // silent: they may run until their agent has ended them.
  if (!options_.ends_agents) return std::max(broken->last_heard, listens_since_) + options_.patience;
  const bool may_run = !member.workers.empty() && !(member.has_ended && member.is_end_certain);
  if (broken->was_silent || may_run) return broken->last_heard + options_.patience;
  return member.has_ended ? broken->at : broken->at + kRedial;
}

std::optional<ClusterEngine::TimePoint> ClusterEngine::next_deadline() const {
  std::optional<TimePoint> next = provider_->next_look();
  const auto consider = [&](std::optional<TimePoint> time) {
    if (time) next = std::min(next.value_or(*time), *time);
  };
  for (const auto& [id, member] : members_) {
    consider(member.link->next_flush());
    consider(given_up_at(member));
  }
  for (const auto& [descriptor, visitor] : visitors_) consider(visitor.until);
  consider(accepts_again_);
  if (stuck_since_) consider(*stuck_since_ + kStuck);
  if (!no_node_comes(Clock::now())) {
    consider(requests_.next_replacement());
    if (has_begun_ && !is_leaving_ && !is_beginning_ && pool_.follows_demand()) {
      consider(pool_.next());
      if (has_pool_changed_) consider(pool_decided_ ? *pool_decided_ + kPoolPeriod : Clock::now());
    }
  }
  if (has_begun_ && !is_leaving_) {
    for (const auto& [id, member] : members_) consider(next_drain_step(member));
    consider(closing_at());
  }
  return next;
}

// ---- Time limits

// Returns how long before its end a node is drained.
ClusterEngine::Clock::duration ClusterEngine::drain_time(TimePoint joined, TimePoint end) const {
  return std::min(std::chrono::duration_cast<Clock::duration>(options_.drain_before), (end - joined) / 2);
}

std::optional<ClusterEngine::TimePoint> ClusterEngine::ends_at(const Member& member) const {
  const std::optional<TimePoint> common = provider_->all_end();
  const std::optional<TimePoint> own = requests_.end_of(member.place());
  return common && own ? std::min(*common, *own) : common ? common : own;
}

// Returns when the provider is to be asked for the node's time limit again, or when the node is to be drained.
std::optional<ClusterEngine::TimePoint> ClusterEngine::next_drain_step(const Member& member) const {
  const std::optional<TimePoint> end = member.is_draining ? std::nullopt : ends_at(member);
  if (!end) return std::nullopt;
  const Clock::duration time = drain_time(member.joined, *end);
  const TimePoint drains = *end - time;
  const bool is_asked = member.asked_for_limit && drains - *member.asked_for_limit < same_limit;
  return is_asked ? drains : drains - std::min<Clock::duration>(kAskForLimitBefore, time / 2);
}

void ClusterEngine::drain_in_time(TimePoint now) {
  bool asks = false;
  for (auto& [id, member] : members_) {
    const std::optional<TimePoint> step = next_drain_step(member);
    if (!step || *step > now) continue;
    const TimePoint end = *ends_at(member);
    const TimePoint drains = end - drain_time(member.joined, end);
    if (drains > now) {
      member.asked_for_limit = drains;
      asks = true;
      continue;
    }
    const double left = std::max(0.0, std::chrono::duration<double>(end - now).count());
    drain(member, left, fmt::format("its time limit comes in {:.0f} s", left));
  }
  if (asks) {
    provider_->look_soon();
    take_provider_events();
  }
  if (const auto closing = closing_at(); closing && *closing <= now) {
    woken_ = true;
    const double left = std::chrono::duration<double>(*provider_->all_end() - now).count();
    closing_ =
        left > 0 ? fmt::format("all nodes reach their time limit in {:.0f} s", left) : "the time of all nodes is over";
  }
}

// Returns true if nodes that are requested now would have to be drained when they come.
bool ClusterEngine::no_node_comes(TimePoint now) const {
  const std::optional<TimePoint> end = provider_->all_end();
  return end && first_joined_ && now >= *end - drain_time(*first_joined_, *end);
}

// Returns when what runs is to be ended; empty: not yet.
std::optional<ClusterEngine::TimePoint> ClusterEngine::closing_at() const {
  const std::optional<TimePoint> end = provider_->all_end();
  if (!end || !first_joined_ || !closing_.empty()) return std::nullopt;
  const Clock::duration time = drain_time(*first_joined_, *end);
  const bool is_idle = workers_.empty() && events_.empty() &&
                       std::ranges::all_of(members_, [](const auto& entry) { return entry.second.is_draining; });
  return is_idle ? *end - time : *end - time / 4;
}

void ClusterEngine::handle_time(TimePoint now) {
  if (const auto look = provider_->next_look(); look && *look <= now) take_provider_events();
  if (accepts_again_ && *accepts_again_ <= now) {
    accepts_again_.reset();
    poller_.watch(listener_.get(), [this] { accept_visitors(); });
  }
  std::erase_if(visitors_, [&](const auto& entry) {
    if (entry.second.until > now) return false;
    poller_.unwatch(entry.first);
    return true;
  });
  if (!is_leaving_) {
    ask_again(now);
    if (has_begun_) drain_in_time(now);
    if (has_begun_ && !is_beginning_) follow_demand(now);  // what it says then would be lost
  }
  std::vector<std::pair<NodeId, std::string>> lost;
  for (const auto& [id, member] : members_) {
    const auto end = given_up_at(member);
    const std::size_t most_bytes = kMostKeptBytes + member.workers.size() * channel::max_message_bytes;
    if (end && *end <= now) {
      lost.emplace_back(id,
                        fmt::format("node {} does not answer: {}", member.node.name, member.link->broken()->reason));
    } else if (member.link->kept_bytes() > most_bytes || member.link->kept_pieces() > kMostKeptPieces) {
      lost.emplace_back(id, fmt::format("node {} does not take what it is sent", member.node.name));
    }
  }
  for (const auto& [id, reason] : lost) give_up(id, reason);
}

void ClusterEngine::flush() {
  const TimePoint now = Clock::now();
  for (auto& [id, member] : members_) {
    if (member.is_draining && !member.is_dismissed && member.workers.empty()) dismiss(member);
    if (!member.link->is_connected() && !std::exchange(member.is_asked_about, true)) provider_->look_soon();
    member.link->flush(now);
  }
}

// The agent ends, and with it the connection.
void ClusterEngine::dismiss(Member& member) {
  encode(Leave{}, bytes_);
  member.link->send(channel::Lane::control, bytes_);
  member.is_dismissed = true;
}

// Waits until something has arrived. Polls first, as channel::Loop does, if workers were told something.
void ClusterEngine::wait_for_arrivals(std::optional<std::chrono::nanoseconds> timeout) {
  if (!std::exchange(expects_soon_, false)) {
    poller_.wait(timeout);
    return;
  }
  const TimePoint begin = Clock::now();
  const TimePoint end =
      begin + std::min<std::chrono::nanoseconds>(timeout.value_or(patience_.longest()), patience_.time_to_poll());
  bool has_arrived = poller_.wait(0ns);
  for (; !has_arrived && Clock::now() < end; has_arrived = poller_.wait(0ns)) ::sched_yield();
  if (!has_arrived) has_arrived = poller_.wait(timeout);
  if (has_arrived || !timeout || *timeout > 0ns) patience_.answer_took(Clock::now() - begin);
}

void ClusterEngine::turn(std::optional<std::chrono::nanoseconds> timeout) {
  const TimePoint begin = Clock::now();
  if (begin - last_turn_ >= channel::Link::longest_silence) listens_since_ = begin;
  if (file_peer_ != nullptr) file_peer_->send_more();
  flush();
  if (const auto deadline = next_deadline()) {
    const TimePoint now = Clock::now();
    const std::chrono::nanoseconds left = *deadline > now ? *deadline - now : 0ns;
    timeout = timeout ? std::min(*timeout, left) : left;
  }
  wait_for_arrivals(timeout);
  handle_time(Clock::now());
  if (is_keeping_due_) keep();
  last_turn_ = Clock::now();
}

std::vector<Event> ClusterEngine::wait(std::optional<std::chrono::nanoseconds> timeout) {
  const auto end = timeout ? std::optional(Clock::now() + *timeout) : std::nullopt;
  do {
    // Before it waits: nothing would end that.
    if (events_.empty() && closing_.empty() && is_stuck()) {
      if (members_.empty())
        throw EngineError(fmt::format("all nodes are gone, and none can be had any more: {}", refusal_));
      if (stuck_since_ && Clock::now() - *stuck_since_ >= kStuck)  // the demand may be one of before
        throw EngineError(fmt::format(
            "what waits has no room on the nodes that are there, and no other one can be had: {}", refusal_));
      if (!stuck_since_) stuck_since_ = Clock::now();
    } else {
      stuck_since_.reset();
    }
    const auto left = end ? std::optional<std::chrono::nanoseconds>(*end - Clock::now()) : std::nullopt;
    turn(events_.empty() ? left : std::optional(0ns));
  } while (events_.empty() && !std::exchange(woken_, false) && (!end || Clock::now() < *end));
  return std::exchange(events_, {});
}

void ClusterEngine::wake() noexcept {
  const int keep = errno;  // a signal handler must not change it
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
  errno = keep;
}

double ClusterEngine::wall_seconds() const { return base::wall_seconds(); }

void ClusterEngine::break_connection(NodeId node) { members_.at(node).link->disconnect("a test breaks it"); }

}  // namespace cadre::engine::cluster
