#include "engine/cluster/carrier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/directory.h"
#include "base/file_descriptor.h"
#include "cadre/error.h"
#include "engine/local/output_limit.h"
#include "storage/remote_directory.h"

namespace cadre::engine::cluster {
namespace fs = std::filesystem;
namespace {

// Checkpoints that a node keeps for a worker when a report of it is answered: it may still read the one before its
// latest one. Until then all stay that it has asked for.
constexpr std::size_t kMostCheckpoints = 2;
constexpr auto kUntilTriedAgain = std::chrono::seconds(5);
constexpr auto kTryingPeriod = std::chrono::milliseconds(100);

const channel::Report* report_with_checkpoint(const Event& event) {
  const auto* const received = std::get_if<Received>(&event);
  const auto* const report = received == nullptr ? nullptr : std::get_if<channel::Report>(&received->message);
  return report == nullptr || report->checkpoint.empty() ? nullptr : report;
}

// Returns why a list of files cannot be what a node has stored; empty if it can. The node is not trusted.
std::string fault_of_list(const Dict& files) {
  const auto is_usable = [](const Value& listed) {
    if (!listed.is_dict()) return false;
    const Config file(listed.dict());
    const Value* const size = file.find("size");
    const Value* const checksum = file.find("xxh3");
    return size != nullptr && size->is_integer() && checksum != nullptr && checksum->is_string();
  };
  for (const auto& [path, listed] : files) {
    if (!fault_of_place(path).empty() || !is_usable(listed))
      return fmt::format("its list of what it has stored has no usable entry for \"{}\"", path);
  }
  return "";
}

bool is_output(const fs::path& file) { return std::ranges::find(output_files, file.filename()) != output_files.end(); }

// Appends what a worker has printed; without effect if the disk refuses, as with the output of workers here.
void append_output(const fs::path& file, const Printed& printed) {
  constexpr ::mode_t readable = 0666;
  const base::FileDescriptor opened(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, readable));
  struct stat status{};
  if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (printed.begins_anew && ::ftruncate(opened.get(), 0) != 0) return;
  for (std::span<const std::byte> rest = printed.bytes; !rest.empty();) {
    const ::ssize_t written = ::write(opened.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest = rest.subspan(static_cast<std::size_t>(written));
  }
  if (static_cast<std::uint64_t>(status.st_size) + printed.bytes.size() > local::max_output_bytes)
    local::limit_output(file);
}

}  // namespace

Carrier::Carrier(std::unique_ptr<Lease> lease, ClusterEngine& nodes, fs::path directory)
    : ForwardingEngine(static_cast<Engine&>(*lease)),
      lease_(std::move(lease)),
      nodes_(nodes),
      directory_(std::move(directory)),
      downloads_(directory_, [this] { nodes_.wake(); }) {
  nodes_.set_file_peer(this);
}

Carrier::~Carrier() {
  lease_->end_workers();  // which may still say something
  clear_nodes();
  nodes_.set_file_peer(nullptr);  // before another run has the nodes
  lease_.reset();
}

// The nodes stay for the next run.
void Carrier::clear_nodes() {
  for (auto& [id, node] : on_nodes_) {
    if (node.sender) stop_sending(id, node);
    std::set<std::string> places = node.there;
    places.insert(node.directories.begin(), node.directories.end());
    for (const auto& [from, receiver] : node.receivers) places.insert(from);
    for (const auto& [from, storing] : node.storing) places.insert(from);
    for (const std::string& place : places) nodes_.send(id, Drop{place});
  }
}

// ---- To workers

void Carrier::start(WorkerId id, const WorkerSpec& spec) {
  const std::vector<Node> nodes = nodes_.nodes();
  const bool is_there = std::ranges::find(nodes, spec.node, &Node::id) != nodes.end();
  if (!is_there) return ForwardingEngine::start(id, spec);  // which says so
  if (nodes_.own_directory_of(spec.node).empty()) {
    heard_.emplace_back(Exited{
        id,
        {.kind = Exit::Kind::not_started,
         .detail = "its node does not see the run's directory, and cannot write to its folder for temporary files"}});
    return ForwardingEngine::wake();
  }
  Worker& worker = workers_[id];
  worker.node = spec.node;
  worker.directory = spec.directory.lexically_relative(nodes_.own_directory_of(spec.node)).string();
  for (const std::string& place : spec.needs) need(worker, place);
  if (fault_of_place(worker.directory).empty()) {
    on_nodes_[spec.node].directories.insert(worker.directory);
    for (const char* name : output_files) append_output(directory_ / worker.directory / name, {});
  }
  call(id, [this, id, spec] {
    workers_.at(id).is_started = true;
    ForwardingEngine::start(id, spec);
  });
}

void Carrier::bring(WorkerId id, const std::vector<std::string>& files) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  for (const std::string& place : files) need(found->second, place);
}

void Carrier::answer(WorkerId id, const channel::Answer& answer) {
  call(id, [this, id, answer] { ForwardingEngine::answer(id, answer); });
  if (const auto found = workers_.find(id); found != workers_.end()) drop_older(found->second);
}
void Carrier::reply(WorkerId id, const channel::StoreReply& reply) {
  call(id, [this, id, reply] { ForwardingEngine::reply(id, reply); });
}
void Carrier::reply(WorkerId id, const channel::Reply& reply) {
  call(
      id, [this, id, reply] { ForwardingEngine::reply(id, reply); },
      [this, id, number = reply.call](const std::string& fault) {
        ForwardingEngine::reply(id, channel::Reply{.error = fault, .call = number});
      });
}

void Carrier::kill(WorkerId id) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  found->second.calls.clear();
  if (found->second.is_started) return ForwardingEngine::kill(id);
  heard_.emplace_back(Exited{id, {.kind = Exit::Kind::signal, .value = SIGKILL}});
  forget(id);
}

void Carrier::call(WorkerId id, std::function<void()> make,
                   std::function<void(const std::string& fault)> make_without) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  found->second.calls.push_back({std::exchange(found->second.needs, {}), std::move(make), std::move(make_without)});
  make_calls(id);
}

void Carrier::make_calls(WorkerId id) {
  for (;;) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.calls.empty()) return;
    const std::set<std::string>& there = on_nodes_[found->second.node].there;
    if (!std::ranges::includes(there, found->second.calls.front().needs)) return;
    const Call next = std::move(found->second.calls.front());
    found->second.calls.pop_front();
    next.make();
  }
}

void Carrier::make_calls_on(NodeId node) {
  std::vector<WorkerId> ids;
  for (const auto& [id, worker] : workers_) {
    if (worker.node == node) ids.push_back(id);
  }
  for (const WorkerId id : ids) make_calls(id);
}

// ---- Files to nodes

void Carrier::need(Worker& worker, const std::string& place) {
  std::error_code none;
  if (fs::is_directory(directory_ / place, none) && std::ranges::find(worker.holds, place) == worker.holds.end())
    worker.holds.push_back(place);
  OnNode& node = on_nodes_[worker.node];
  node.unneeded.erase(place);
  if (node.there.contains(place)) return;
  const bool is_on_its_way = (node.sender && node.sender->place() == place) || node.loading.contains(place) ||
                             node.downloading.contains(place) ||
                             std::ranges::find(node.to_send, place) != node.to_send.end();
  if (!is_on_its_way && rename_reported(worker.node, place)) return;
  worker.needs.insert(place);
  if (!is_on_its_way) node.to_send.push_back(place);
}

// Keeps checkpoints that calls wait for, too.
void Carrier::drop_older(Worker& worker) {
  const auto is_awaited = [&worker](const std::string& held) {
    return std::ranges::any_of(worker.calls, [&](const Call& call) { return call.needs.contains(held); });
  };
  while (worker.holds.size() > kMostCheckpoints) {
    const auto former = std::ranges::find_if_not(worker.holds, is_awaited);
    if (former == worker.holds.end()) return;
    const std::string dropped = std::move(*former);
    worker.holds.erase(former);
    drop_unless_held(worker.node, dropped);
  }
}

// Renames what a worker of the node has reported: it is there already, under the name that it had then. Returns false
// if no worker has reported this.
bool Carrier::rename_reported(NodeId node, const std::string& place) {
  const auto reporter = std::ranges::find_if(workers_, [&](const auto& entry) {
    const Worker& worker = entry.second;
    return worker.node == node && !worker.reported.empty() && worker.reported_here.is_at(directory_ / place);
  });
  if (reporter == workers_.end()) return false;
  nodes_.send(node, Move{std::exchange(reporter->second.reported, ""), place});
  on_nodes_[node].there.insert(place);
  return true;
}

void Carrier::send_more() {
  go_on_trying();
  take_downloads();
  std::vector<NodeId> ready;
  std::vector<Fault> faults;
  std::vector<std::pair<NodeId, std::string>> unlisted;
  for (auto& [id, node] : on_nodes_) {
    for (auto& [place, storing] : node.storing) {
      if (storing.retry_at <= Clock::now()) unlisted.emplace_back(id, place);
    }
    for (auto& [place, receiver] : node.receivers) {
      if (receiver.retry_at > Clock::now()) continue;
      receiver.retry_at = TimePoint::max();
      receiver.files = std::make_unique<FileReceiver>(directory_, receiver.to);
      nodes_.send(id, Fetch{place});
    }
    while ((node.sender || !node.to_send.empty()) && nodes_.has_room(id)) {
      if (!node.sender) {
        const std::string place = std::move(node.to_send.front());
        node.to_send.pop_front();
        try {
          if (!has_files(id, place)) continue;
        } catch (const StorageError& error) {
          faults.push_back({id, place, error.what()});
          continue;
        }
        node.sender.emplace(place, directory_ / place);
      }
      const Piece piece = node.sender->next();
      nodes_.send(id, piece);
      if (!node.sender->is_done()) continue;
      node.sender.reset();
      if (piece.kind == Piece::Kind::end) node.there.insert(piece.place);
      if (piece.kind == Piece::Kind::fault) faults.push_back({id, piece.place, piece.fault});
      ready.push_back(id);
    }
  }
  for (const auto& [node, place] : unlisted) list_stored(node, place);
  for (const auto& [node, place, fault] : faults) cannot_have(node, place, fault);
  for (const NodeId node : ready) make_calls_on(node);
}

// Returns true if a directory is here with its files; otherwise has its node load them, or downloads them.
bool Carrier::has_files(NodeId node, const std::string& place) {
  const auto remote = storage::remote_files(directory_ / place);
  if (!remote) return true;
  if (reaches_storage(node)) {
    on_nodes_[node].loading.insert(place);
    nodes_.send(node, LoadFiles{.place = place, .name = remote->place_of(place), .files = remote->files});
  } else {
    on_nodes_[node].downloading[place] = TimePoint::max();
    downloads_.begin(place);
  }
  return false;
}

void Carrier::arrived(NodeId node, const FilesLoaded& loaded) {
  OnNode& on_node = on_nodes_[node];
  if (on_node.loading.erase(loaded.place) == 0) return;
  const bool is_needed = on_node.unneeded.erase(loaded.place) == 0;
  if (loaded.fault.empty()) {
    if (!is_needed) return nodes_.send(node, Drop{loaded.place});
    on_node.there.insert(loaded.place);
    return make_calls_on(node);
  }
  if (!loaded.may_pass) return cannot_have(node, loaded.place, loaded.fault);
  fails_in_storage(node, loaded.fault);
  if (is_needed) on_node.to_send.push_back(loaded.place);
}

// Sends what is here now. A storage that fails is tried again and again, as the publisher does it: workers wait.
void Carrier::take_downloads() {
  for (const Downloads::Done& done : downloads_.take_done()) {
    if (done.fault.empty()) has_said_it_waits_ = false;
    if (done.may_pass && !std::exchange(has_said_it_waits_, true))
      std::fprintf(stderr, "cadre: %s cannot be downloaded for its node: %s; it is tried again and again\n",
                   done.place.c_str(), done.fault.c_str());
    for (const NodeId id : nodes_that_wait_for(done.place)) {
      OnNode& node = on_nodes_.at(id);
      if (done.may_pass) {
        node.downloading.at(done.place) = Clock::now() + kUntilTriedAgain;
        continue;
      }
      node.downloading.erase(done.place);
      done.fault.empty() ? node.to_send.push_back(done.place) : cannot_have(id, done.place, done.fault);
    }
  }
  for (auto& [id, node] : on_nodes_) {
    std::erase_if(node.downloading, [&, &to_send = node.to_send](const auto& entry) {
      const bool is_due = entry.second <= Clock::now();
      if (is_due) to_send.push_back(entry.first);
      return is_due;
    });
  }
}

std::vector<NodeId> Carrier::nodes_that_wait_for(const std::string& download) const {
  std::vector<NodeId> nodes;
  for (const auto& [id, node] : on_nodes_) {
    if (node.downloading.contains(download)) nodes.push_back(id);
  }
  return nodes;
}

// Ends the workers that need or hold what is not to be had, but for those that only asked for it.
void Carrier::cannot_have(NodeId node, const std::string& place, const std::string& fault) {
  on_nodes_[node].there.erase(place);
  std::vector<WorkerId> affected;
  for (const auto& [id, worker] : workers_) {
    const bool needs_it = worker.needs.contains(place) || std::ranges::any_of(worker.calls, [&](const Call& call) {
                            return call.needs.contains(place);
                          });
    const bool holds_it = std::ranges::find(worker.holds, place) != worker.holds.end();
    if (worker.node == node && (needs_it || holds_it)) affected.push_back(id);
  }
  const std::string text = fmt::format("its node cannot have {}: {}", place, fault);
  for (const WorkerId id : affected) can_do_without(workers_.at(id), place, text) ? make_calls(id) : end_with(id, text);
}

bool Carrier::can_do_without(Worker& worker, const std::string& place, const std::string& fault) {
  std::size_t replies = 0;
  for (Call& call : worker.calls) {
    if (!call.needs.contains(place)) continue;
    if (!call.make_without) return false;
    call.needs.erase(place);
    call.make = [make = call.make_without, fault] { make(fault); };
    ++replies;
  }
  std::erase(worker.holds, place);
  return replies > 0 && !worker.needs.contains(place);
}

void Carrier::drop_unless_held(NodeId node, const std::string& place) {
  for (const auto& [id, worker] : workers_) {
    if (worker.node == node && std::ranges::find(worker.holds, place) != worker.holds.end()) return;
  }
  const auto found = on_nodes_.find(node);
  if (found == on_nodes_.end() || found->second.kept == place) return;
  OnNode& on_node = found->second;
  std::erase(on_node.to_send, place);
  on_node.downloading.erase(place);
  if (on_node.loading.contains(place)) on_node.unneeded.insert(place);
  if (on_node.sender && on_node.sender->place() == place) stop_sending(node, on_node);
  if (on_node.there.erase(place) != 0) nodes_.send(node, Drop{place});
}

// The node removes what it has of it.
void Carrier::stop_sending(NodeId node, OnNode& on_node) {
  nodes_.send(
      node, Piece{.kind = Piece::Kind::fault, .place = on_node.sender->place(), .fault = "it is not needed any more"});
  on_node.sender.reset();
}

// ---- From workers

std::vector<Event> Carrier::wait(std::optional<std::chrono::nanoseconds> timeout) {
  const auto end = timeout ? std::optional(Clock::now() + *timeout) : std::nullopt;
  while (heard_.empty()) {
    const auto left = end ? std::optional<std::chrono::nanoseconds>(*end - Clock::now()) : std::nullopt;
    std::vector<Event> events = ForwardingEngine::wait(left);
    const bool is_over = events.empty();  // the time, or somebody has woken it
    for (Event& event : events) hear(std::move(event));
    if (is_over) break;
  }
  return std::exchange(heard_, {});
}

void Carrier::hear(Event event) {
  if (const auto* joined = std::get_if<NodeJoined>(&event); joined != nullptr && reach_) {
    const NodeId node = joined->node.id;
    joining_.emplace(node, std::move(event));
    return try_storage(node);
  }
  if (const auto* draining = std::get_if<NodeDraining>(&event)) announce(draining->node);
  if (const auto* left = std::get_if<NodeLeft>(&event); left != nullptr && joining_.erase(left->node) != 0)
    return lose(left->node);  // nobody knows of it
  std::optional<WorkerId> id;
  if (const auto* received = std::get_if<Received>(&event)) id = received->worker;
  if (const auto* exited = std::get_if<Exited>(&event)) id = exited->worker;
  if (const auto* left = std::get_if<NodeLeft>(&event)) lose(left->node);
  const auto found = id ? workers_.find(*id) : workers_.end();
  if (found == workers_.end()) return heard_.push_back(std::move(event));
  Worker& worker = found->second;
  if (!worker.fetched.empty()) return worker.said.push_back(std::move(event));
  if (auto* exited = std::get_if<Exited>(&event)) {
    if (!worker.fault.empty()) exited->exit.detail = worker.fault;
    forget(*id);
  } else if (!worker.fault.empty()) {
    return;  // it is being killed
  } else if (const channel::Report* report = report_with_checkpoint(event)) {
    const std::string place = worker.directory + "/" + report->checkpoint;
    // The controller refuses a name that cannot be a checkpoint's.
    if (report->checkpoint.find('/') == std::string::npos && fault_of_place(place).empty()) {
      fetch_report(worker, place);
      return worker.said.push_back(std::move(event));
    }
  }
  heard_.push_back(std::move(event));
}

void Carrier::fetch_report(Worker& worker, const std::string& place) {
  if (!worker.reported.empty()) nodes_.send(worker.node, Drop{worker.reported});
  worker.reported.clear();
  worker.fetched = place;
  bring_here(worker.node, place, place, true);
}

void Carrier::bring_here(NodeId node, const std::string& from, const std::string& to, bool is_of_report) {
  reaches_storage(node) ? store(node, from, to, is_of_report) : receive(node, from, to, is_of_report);
}

void Carrier::store(NodeId node, const std::string& from, const std::string& to, bool is_of_report) {
  const RunStorage::Place place = reach_->storage().place_of(to);
  on_nodes_[node].storing[from] = {.to = to, .is_of_report = is_of_report, .place = place};
  nodes_.send(node, StoreFiles{.place = from,
                               .name = place.part.empty() ? place.directory : place.directory + "/" + place.part});
}

void Carrier::arrived(NodeId node, const FilesStored& stored) {
  OnNode& on_node = on_nodes_[node];
  const auto found = on_node.storing.find(stored.place);
  if (found == on_node.storing.end()) return;
  const std::string fault = stored.fault.empty() ? fault_of_list(stored.files) : stored.fault;
  if (fault.empty()) {
    found->second.files = storage::in_part(stored.files, found->second.place.part);
    return list_stored(node, stored.place);
  }
  const Storing storing = std::move(found->second);
  on_node.storing.erase(found);
  fails_in_storage(node, fault);
  receive(node, stored.place, storing.to, storing.is_of_report);
}

// Makes the directory without its files that stands here for what a node has stored.
void Carrier::list_stored(NodeId node, const std::string& from) {
  Storing& storing = on_nodes_.at(node).storing.at(from);
  std::string fault;
  try {
    base::remove_tree(directory_ / storing.to);
    storage::make_remote(directory_ / storing.to, {.files = *storing.files, .place = storing.place.directory});
  } catch (const OutOfSpace&) {  // the worker waits in report(), as it would here
    storing.retry_at = Clock::now() + kUntilTriedAgain;
    return;
  } catch (const StorageError& error) {
    fault = error.what();
  }
  const Storing stored = std::move(storing);
  on_nodes_.at(node).storing.erase(from);
  has_arrived(node, from, stored.to, stored.is_of_report, fault);
}

void Carrier::fetch(NodeId node, const std::string& from, const std::string& to) {
  const std::vector<Node> nodes = nodes_.nodes();
  std::string fault = fault_of_place(from);
  if (!fault.empty()) fault = fmt::format("{} is no path in its node's directory: {}", from, fault);
  if (std::ranges::find(nodes, node, &Node::id) == nodes.end()) fault = "its node has left";
  if (fault.empty()) return bring_here(node, from, to, false);
  heard_.emplace_back(Fetched{node, from, fault});
  ForwardingEngine::wake();
}

void Carrier::receive(NodeId node, const std::string& from, const std::string& to, bool is_of_report) {
  on_nodes_[node].receivers[from] = {
      .to = to, .is_of_report = is_of_report, .files = std::make_unique<FileReceiver>(directory_, to)};
  nodes_.send(node, Fetch{from});
}

void Carrier::keep_fetched(NodeId node, const std::string& from, const std::string& name) {
  const auto found = on_nodes_.find(node);
  if (found == on_nodes_.end()) return;
  if (name.empty()) return nodes_.send(node, Drop{from});
  nodes_.send(node, Move{from, name});
  found->second.there.insert(name);
  const std::string former = std::exchange(found->second.kept, name);
  if (!former.empty()) drop_unless_held(node, former);
}

void Carrier::arrived(NodeId node, const Piece& piece) {
  OnNode& on_node = on_nodes_[node];
  const auto found = on_node.receivers.find(piece.place);
  if (found == on_node.receivers.end()) {
    if (piece.kind == Piece::Kind::fault) cannot_have(node, piece.place, piece.fault);
    return;
  }
  const bool is_last = piece.kind == Piece::Kind::end || piece.kind == Piece::Kind::fault;
  if (found->second.files == nullptr) {  // there was no space for what came before; it is fetched again after its end
    if (is_last) found->second.retry_at = Clock::now() + kUntilTriedAgain;
    return;
  }
  std::string fault;
  try {
    if (!found->second.files->take(piece)) return;
  } catch (const OutOfSpace&) {  // the worker waits in report(), as it would here
    found->second.files.reset();
    if (is_last) found->second.retry_at = Clock::now() + kUntilTriedAgain;
    return;
  } catch (const StorageError& error) {
    fault = error.what();
  }
  const Receiver receiver = std::move(found->second);
  on_node.receivers.erase(found);
  has_arrived(node, piece.place, receiver.to, receiver.is_of_report, fault);
}

// Tells the controller, or lets the worker go on that has reported this.
void Carrier::has_arrived(NodeId node, const std::string& from, const std::string& to, bool is_of_report,
                          const std::string& fault) {
  if (!is_of_report) {
    if (!fault.empty()) nodes_.send(node, Drop{from});
    heard_.emplace_back(Fetched{node, from, fault});
    return ForwardingEngine::wake();
  }
  const auto who = std::ranges::find_if(
      workers_, [&](const auto& entry) { return entry.second.node == node && entry.second.fetched == from; });
  if (who == workers_.end()) return;
  if (fault.empty()) {
    who->second.reported = from;
    who->second.reported_here = KnownFile(directory_ / to);
  }
  end_fetching(who->first, fault);
}

// ---- The storage

std::map<std::string, std::string> Carrier::use_storage(RunStorage storage) {
  reach_.emplace(std::move(storage));
  for (const Node& node : nodes_.nodes()) try_storage(node.id);
  while (reach_->awaits_first_tries()) {
    for (Event& event : ForwardingEngine::wait(kTryingPeriod)) hear(std::move(event));
    go_on_trying();
  }
  return std::exchange(without_storage_, {});
}

std::vector<Node> Carrier::nodes() const {
  std::vector<Node> nodes = ForwardingEngine::nodes();
  const auto is_to_come = [&](const Node& node) {
    return joining_.contains(node.id) || std::ranges::any_of(heard_, [&](const Event& event) {
             const auto* joined = std::get_if<NodeJoined>(&event);
             return joined != nullptr && joined->node.id == node.id;
           });
  };
  std::erase_if(nodes, is_to_come);
  return nodes;
}

void Carrier::try_storage(NodeId node) { nodes_.send(node, reach_->begin(node, Clock::now())); }

void Carrier::arrived(NodeId node, const TriedStorage& tried) {
  if (!reach_ || !reach_->is_trying(node) || tried.uri != storage::to_string(reach_->storage().uri)) return;
  const std::string fault = reach_->take(node, tried, Clock::now());
  if (!fault.empty()) return cannot_use_storage(node, fault);
  if (reach_->failed_tries(node) > 0)
    std::fprintf(stderr, "cadre: node %s reaches %s now, and stores and loads files there itself\n",
                 name_of(node).c_str(), storage::shown(reach_->storage().uri).c_str());
  announce(node);
}

void Carrier::go_on_trying() {
  if (!reach_) return;
  for (const NodeId node : reach_->give_up(Clock::now()))
    cannot_use_storage(node, fmt::format("it has not answered for {} s", StorageReach::time_to_try.count()));
  for (const NodeId node : reach_->due(Clock::now())) try_storage(node);
}

void Carrier::cannot_use_storage(NodeId node, const std::string& fault) {
  if (reach_->failed_tries(node) > 1) return;  // that is known
  const std::string name = name_of(node);
  if (joining_.contains(node)) {
    std::fprintf(stderr, "cadre: node %s does not reach %s, and its files go over its connection: %s\n", name.c_str(),
                 storage::shown(reach_->storage().uri).c_str(), fault.c_str());
  } else {
    without_storage_[name] = fault;
  }
  announce(node);
}

void Carrier::announce(NodeId node) {
  auto joined = joining_.extract(node);
  if (!joined) return;
  heard_.push_back(std::move(joined.mapped()));
  ForwardingEngine::wake();
}

void Carrier::fails_in_storage(NodeId node, const std::string& fault) {
  if (!reach_->fails(node, Clock::now())) return;
  std::fprintf(stderr, "cadre: node %s fails at %s, and its files go over its connection for %g s: %s\n",
               name_of(node).c_str(), storage::shown(reach_->storage().uri).c_str(),
               std::chrono::duration<double>(StorageReach::time_without).count(), fault.c_str());
}

std::string Carrier::name_of(NodeId node) const {
  const std::vector<Node> nodes = nodes_.nodes();
  const auto found = std::ranges::find(nodes, node, &Node::id);
  return found == nodes.end() ? std::to_string(node) : found->name;
}

void Carrier::arrived(NodeId node, const Printed& printed) {
  const bool is_of_a_worker = std::ranges::any_of(workers_, [&](const auto& entry) {
    return entry.second.node == node && fs::path(printed.file).parent_path() == entry.second.directory;
  });
  if (is_of_a_worker && fault_of_place(printed.file).empty() && is_output(printed.file))
    append_output(directory_ / printed.file, printed);
}

// Lets a worker say what waited for the end of that; without the report if that has a fault.
void Carrier::end_fetching(WorkerId id, const std::string& fault) {
  Worker& worker = workers_.at(id);
  worker.fetched.clear();
  std::deque<Event> said = std::exchange(worker.said, {});
  if (fault.empty()) heard_.push_back(std::move(said.front()));
  said.pop_front();
  if (!fault.empty()) end_with(id, fmt::format("the checkpoint that it has reported cannot be had: {}", fault));
  for (Event& event : said) hear(std::move(event));
  ForwardingEngine::wake();
}

void Carrier::end_with(WorkerId id, const std::string& fault) {
  Worker& worker = workers_.at(id);
  worker.calls.clear();
  if (worker.is_started) {
    worker.fault = fault;
    return ForwardingEngine::kill(id);
  }
  heard_.emplace_back(Exited{id, {.kind = Exit::Kind::not_started, .detail = fault}});
  forget(id);
  ForwardingEngine::wake();
}

// Its workers were lost with it, and some of what they have said with what was on its way.
void Carrier::lose(NodeId node) {
  std::vector<WorkerId> ids;
  for (const auto& [id, worker] : workers_) {
    if (worker.node == node) ids.push_back(id);
  }
  for (const WorkerId id : ids) {
    Worker& worker = workers_.at(id);
    if (!worker.is_started)
      heard_.emplace_back(Exited{id, {Exit::Kind::node_lost, 0, "its node has left before it was started"}});
    const bool has_ended = !worker.said.empty() && std::holds_alternative<Exited>(worker.said.back());
    if (has_ended) heard_.push_back(std::move(worker.said.back()));
    workers_.erase(id);
  }
  for (const auto& [from, receiver] : on_nodes_[node].receivers) {
    if (!receiver.is_of_report) heard_.emplace_back(Fetched{node, from, "its node has left"});
  }
  for (const auto& [from, storing] : on_nodes_[node].storing) {
    if (!storing.is_of_report) heard_.emplace_back(Fetched{node, from, "its node has left"});
  }
  on_nodes_.erase(node);
  if (reach_) reach_->forget(node);
}

void Carrier::forget(WorkerId id) {
  const auto gone = workers_.extract(id);
  const Worker& worker = gone.mapped();
  for (const std::string& place : worker.holds) drop_unless_held(worker.node, place);
  if (!worker.reported.empty()) nodes_.send(worker.node, Drop{worker.reported});
}

}  // namespace cadre::engine::cluster
