#include "engine/cluster/nodes_by_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cadre/error.h"
#include "engine/cluster/shell.h"

namespace cadre::engine::cluster {
namespace {

using std::chrono::seconds;

constexpr auto kMostTime = seconds(30);  // of a list, of a cancellation, and of what is given back
// A busy batch system takes its time, and what is killed may have queued its job.
constexpr auto kMostTimeToSubmit = std::chrono::minutes(10);
constexpr auto kListAfterChange = seconds(5);
constexpr auto kListOtherwise = seconds(30);
constexpr auto kChange = seconds(60);
constexpr auto kListSoon = seconds(1);
// Lists in a row that must lack a job before it counts as ended. One list may be too early, and one that fails, though
// it names jobs, may do so because its server is busy.
constexpr std::int64_t kMostMissed = 2;
constexpr std::int64_t kMostMissedOfFailed = 4;
// Variable by which a process that continues recognises the command.
constexpr const char* kMarkVariable = "CADRE_NODE_MARK";

std::string how_it_ended(const NodeCommands& commands, const Command& command) {
  return command.end_of(commands.submit.front(), in_one_line(command.errors()));
}

}  // namespace

NodesByCommand::NodesByCommand(NodeCommands commands, std::string jobs, Variables own,
                               std::chrono::milliseconds patience)
    : commands_(std::move(commands)), jobs_(std::move(jobs)), own_(std::move(own)), patience_(patience) {}

// ---- Beginnings

void NodesByCommand::request(const NodeRequest& request, const AgentStart& start) {
  std::vector<std::string> faults = faults_of(commands_, start.over_stdio);
  std::ranges::move(faults_of(commands_, request), std::back_inserter(faults));
  if (!faults.empty()) {
    events_.push_back(Refused{.request = request.id, .reason = fmt::format("{}", fmt::join(faults, "; "))});
    return;
  }
  for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
    Node& node = nodes_[{request.id, ordinal}];
    node.request = request;
    node.start = start;
    begin({request.id, ordinal}, node);
  }
}

void NodesByCommand::begin(const Place& place, Node& node) {
  if (has_hosts(commands_)) {
    node.host = free_host(node);
    if (node.host.empty())
      return tell_waiting(place, node, fmt::format("all hosts of \"{}\" have a node", node.request.group));
  }
  const std::map<std::string, std::string> values =
      values_of(node.request, node_name(jobs_, place.first, place.second), node.host);
  Variables variables = own_;
  if (!node.start.mark.empty()) variables[kMarkVariable] = node.start.mark;
  const bool ends_with_this = !has_queue(commands_) && !node.start.outlives;
  node.submitted = Clock::now();
  try {
    node.submit = std::make_unique<Command>(
        CommandStart{.arguments = filled(commands_.submit, values),
                     .environment = as_environment(variables),
                     .directory = {},
                     .input = start_script(node.start, own_, place.second, has_queue(commands_)),
                     .carries_session = node.start.over_stdio,
                     .death_signal = ends_with_this ? SIGTERM : 0});
    if (has_queue(commands_)) node.submit->kill_at(node.submitted + kMostTimeToSubmit);
    if (node.start.over_stdio) connections_.push_back({place.first, place.second, node.submit->take_session()});
    changed_ = node.submitted;
  } catch (const EngineError& error) {
    end(place, node, error.what());
  }
}

// Returns the host that has been without a node for longest, because a host that was used later may have failed; empty
// if all have a node.
std::string NodesByCommand::free_host(const Node& node) const {
  std::set<std::string> taken;
  for (const auto& [place, other] : nodes_) {
    if (!other.has_ended) taken.insert(other.host);
  }
  const auto last_used = [&](const std::string& host) {
    const auto found = last_used_.find(host);
    return found == last_used_.end() ? TimePoint::min() : found->second;
  };
  std::vector<std::string> hosts = hosts_of(node.request.options);
  std::erase_if(hosts, [&](const std::string& host) { return taken.contains(host); });
  return hosts.empty() ? "" : *std::ranges::min_element(hosts, {}, last_used);
}

void NodesByCommand::claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) {
  std::map<Place, Node> found;
  for (const NodeProcess& process : processes) {
    Node node{.host = process.host, .job = process.job};
    if (process.pid != 0) node.submit = Command::take_over(static_cast<::pid_t>(process.pid), process.mark);
    // The commands may have been changed: without a queue they know no jobs, and with one no processes that are agents.
    if (has_queue(commands_) ? node.job.empty() : node.submit == nullptr) continue;
    node.start.mark = process.mark;
    found[{process.request, process.ordinal.value_or(0)}] = std::move(node);
  }
  for (const auto& [request, ended] : requests) {
    for (std::int64_t ordinal = 0; ordinal < request.nodes; ++ordinal) {
      if (ended.contains(ordinal)) continue;
      const auto claimed = found.extract(Place(request.id, ordinal));
      Node& node = nodes_[{request.id, ordinal}];
      if (claimed) node = std::move(claimed.mapped());
      node.request = request;
      // The agent may be there all the same.
      if (!claimed) end({request.id, ordinal}, node, "the command or job that started it is not known any more", false);
    }
  }
  for (auto& [place, node] : found) {  // not claimed
    const auto id_of = [](const KeptRequest& request) { return request.request.id; };
    const auto known = std::ranges::find(requests, place.first, id_of);
    if (known != requests.end()) node.request = known->request;  // with the options that `cancel` may need
    node.request.id = place.first;
    Node& kept = nodes_[place] = std::move(node);
    give_back(place, kept);
  }
  look_soon();
}

std::vector<NodeProcess> NodesByCommand::processes() const {
  std::vector<NodeProcess> all;
  for (const auto& [place, node] : nodes_) {
    const bool runs = node.submit != nullptr && !node.submit->has_ended() && !has_queue(commands_);
    if (node.has_ended || node.is_released || (!runs && node.job.empty())) continue;
    all.push_back({.request = place.first,
                   .ordinal = place.second,
                   .pid = runs ? node.submit->process() : 0,
                   .mark = node.start.mark,
                   .job = node.job,
                   .host = node.host});
  }
  return all;
}

// ---- Ends

void NodesByCommand::release(std::uint64_t request) {
  for (auto& [place, node] : nodes_) {
    if (place.first == request) give_back(place, node);
  }
}

void NodesByCommand::release(std::uint64_t request, std::int64_t ordinal) {
  const auto found = nodes_.find({request, ordinal});
  if (found != nodes_.end()) give_back(found->first, found->second);
}

void NodesByCommand::give_back(const Place& place, Node& node) {
  if (std::exchange(node.is_released, true)) return;
  node.released = changed_ = Clock::now();
  if (node.submit == nullptr && node.job.empty()) return end(place, node, "given back");  // it waits for a host
  if (!has_queue(commands_)) node.submit->kill(SIGTERM);
  if (node.submit != nullptr) node.submit->kill_at(std::min(node.submit->kill_time(), node.released + kMostTime));
  cancel(place, node);
}

// A job that is not known yet is cancelled when it is.
void NodesByCommand::cancel(const Place& place, Node& node) {
  if (commands_.cancel.empty() || node.cancel != nullptr || (has_queue(commands_) && node.job.empty())) return;
  node.next_cancel = TimePoint::max();
  try {
    node.cancel = run(commands_.cancel, place, node);
    node.cancel->kill_at(Clock::now() + kMostTime);
  } catch (const EngineError&) {  // no free processes or descriptors for the moment
    node.next_cancel = Clock::now() + kListSoon;
  }
}

// Returns true if an agent may be there that is of no use any more.
bool NodesByCommand::is_to_be_cancelled(const Node& node) const {
  const bool is_useless = has_queue(commands_) ? node.is_released && !node.has_ended
                                               : node.submit != nullptr && (node.is_released || node.has_ended);
  return is_useless && !node.is_cancelled && !commands_.cancel.empty();
}

void NodesByCommand::look_at_cancellation(const Place& place, Node& node) {
  if (node.cancel == nullptr) {
    if (Clock::now() < node.next_cancel) return;
    node.next_cancel = TimePoint::max();
    if (is_to_be_cancelled(node)) cancel(place, node);
    return;
  }
  if (!node.cancel->update()) return;
  node.cancel.reset();
  node.is_cancelled = true;  // or the agent had ended before; if neither, a list says so
  node.cancelled = changed_ = Clock::now();
}

std::unique_ptr<Command> NodesByCommand::run(const Words& command, const Place& place, const Node& node) const {
  const std::string name = node_name(jobs_, place.first, place.second);
  std::map<std::string, std::string> values = values_of(node.request, name, node.host);
  values["id"] = node.job.empty() ? name : node.job;
  return std::make_unique<Command>(
      CommandStart{.arguments = filled(command, values), .environment = as_environment(own_)});
}

void NodesByCommand::end(const Place& place, Node& node, const std::string& reason, bool is_certain) {
  if (std::exchange(node.has_ended, true)) return;
  changed_ = Clock::now();
  if (!node.host.empty()) last_used_[node.host] = changed_;
  events_.push_back(
      AgentEnded{.request = place.first, .ordinal = place.second, .reason = reason, .is_certain = is_certain});
}

void NodesByCommand::tell_waiting(const Place& place, Node& node, const std::string& why) {
  if (why == node.told || node.is_released) return;
  events_.push_back(Queued{.request = place.first, .reason = why, .ordinal = place.second});
  node.told = why;
}

bool NodesByCommand::is_giving_back() const {
  // A command that is killed before it has passed on its end leaves an agent elsewhere that nobody needs.
  const auto is_told_to_end = [this](const Node& node) {
    return !has_queue(commands_) && node.is_released && node.submit != nullptr && !node.submit->has_ended();
  };
  return std::ranges::any_of(
      nodes_, [&](const auto& entry) { return is_to_be_cancelled(entry.second) || is_told_to_end(entry.second); });
}

// ---- Progress of nodes

void NodesByCommand::look(const Place& place, Node& node) {
  look_at_cancellation(place, node);
  if (node.submit != nullptr) {
    has_queue(commands_) ? look_at_submission(place, node) : look_at_agent(place, node);
  } else if (node.job.empty() && !node.has_ended) {
    begin(place, node);  // it waits for a host
  }
}

void NodesByCommand::look_at_agent(const Place& place, Node& node) {
  if (!node.submit->update() || node.has_ended) return;
  end(place, node, how_it_ended(commands_, *node.submit), agent_end(node.submit->errors()).has_value());
  if (!node.is_cancelled) cancel(place, node);
}

void NodesByCommand::look_at_submission(const Place& place, Node& node) {
  if (!node.submit->update()) return;
  const std::unique_ptr<Command> command = std::move(node.submit);
  if (command->end().starts_with("signal"))
    return end(place, node,
               fmt::format("{}; its job may be queued all the same, as {}", how_it_ended(commands_, *command),
                           node_name(jobs_, place.first, place.second)),
               false);
  if (!command->has_succeeded()) return end(place, node, how_it_ended(commands_, *command));
  const std::optional<std::string> id = job_id(command->output(), commands_.id);
  if (!id)
    return end(place, node,
               fmt::format("{} prints no id of a job: \"{}\"; cluster.commands.id can say where it is",
                           commands_.submit.front(), in_one_line(command->output())));
  node.job = *id;
  node.submitted = Clock::now();
  tell_waiting(place, node, fmt::format("job {} is queued", *id));
  next_list_ = std::min(next_list_, Clock::now() + kListSoon);
  if (node.is_released) cancel(place, node);
}

// ---- The list of jobs

void NodesByCommand::look_soon() {
  if (has_queue(commands_)) next_list_ = Clock::now();
}

bool NodesByCommand::is_listing_due() const {
  return list_ == nullptr && Clock::now() >= next_list_ && std::ranges::any_of(nodes_, [](const auto& entry) {
           return !entry.second.job.empty() && !entry.second.has_ended;
         });
}

void NodesByCommand::look_at_list() {
  if (is_listing_due()) {
    Words ids;
    for (const auto& [place, node] : nodes_) {
      if (!node.job.empty() && !node.has_ended) ids.push_back(node.job);
    }
    listed_ = Clock::now();
    next_list_ = listed_ + (listed_ - changed_ < kChange ? kListAfterChange : kListOtherwise);
    try {
      list_ = std::make_unique<Command>(
          CommandStart{.arguments = filled(commands_.list, {}, ids), .environment = as_environment(own_)});
      list_->kill_at(listed_ + kMostTime);
    } catch (const EngineError&) {  // no free processes or descriptors for the moment
    }
  }
  if (list_ == nullptr) return;
  if (!list_->update()) return;
  const std::unique_ptr<Command> list = std::move(list_);
  Listing listing{.printed = std::string(list->output()),
                  .errors = std::string(list->errors()),
                  .is_whole = list->has_succeeded() && !list->is_output_cut()};
  listing.has_some = !list->is_output_cut() && std::ranges::any_of(nodes_, [&](const auto& entry) {
    return !entry.second.job.empty() && line_of(listing.printed, entry.second.job);
  });
  for (auto& [place, node] : nodes_) compare(place, node, listing);
}

// Some commands also fail if one of several jobs is not known any more, and name it, or list the others. A list that
// fails otherwise is no answer: the queue's server is down, and its jobs run on.
void NodesByCommand::compare(const Place& place, Node& node, const Listing& list) {
  if (node.job.empty() || node.has_ended || listed_ <= node.submitted) return;
  const std::optional<std::string> line = line_of(list.printed, node.job);
  if (line || (!list.is_whole && connected_.contains(place))) {
    node.missed = 0;
    node.unanswered_since.reset();
    if (!line) return;
    if (finds(commands_.ended, *line)) return end(place, node, *line);
    tell_waiting(place, node, *line);
    if (node.is_released && node.is_cancelled && listed_ > node.cancelled) cancel(place, node);  // it was of no use
    return;
  }
  if (list.is_whole || list.has_some || line_of(list.errors, node.job)) {
    if (++node.missed < (list.is_whole ? kMostMissed : kMostMissedOfFailed)) return;
    return end(place, node, fmt::format("job {} is not listed any more", node.job));
  }
  if (!node.unanswered_since) node.unanswered_since = listed_;
  if (Clock::now() - *node.unanswered_since < patience_) return;
  const std::string errors = in_one_line(list.errors);
  end(place, node,
      fmt::format("nothing is known of job {}: {} fails{}{}", node.job, commands_.list.front(),
                  errors.empty() ? "" : ": ", errors));
}

// ---- Events

std::vector<ProviderEvent> NodesByCommand::take_events() {
  for (auto& [place, node] : nodes_) look(place, node);
  look_at_list();
  std::erase_if(nodes_, [this](const auto& entry) {
    const Node& node = entry.second;
    return node.has_ended && node.cancel == nullptr && !is_to_be_cancelled(node);
  });
  return std::exchange(events_, {});
}

std::optional<NodesByCommand::TimePoint> NodesByCommand::next_look() const {
  if (!events_.empty()) return Clock::now();
  TimePoint next = TimePoint::max();
  for (const auto& [place, node] : nodes_) {
    next = std::min(next, node.next_cancel);
    for (const auto* command : {&node.submit, &node.cancel}) {
      if (*command != nullptr) next = std::min(next, (*command)->kill_time());
    }
    if (!node.job.empty() && !node.has_ended && list_ == nullptr) next = std::min(next, next_list_);
  }
  if (list_ != nullptr) next = std::min(next, list_->kill_time());
  if (next == TimePoint::max()) return std::nullopt;
  return next;
}

std::vector<int> NodesByCommand::fds() const {
  std::vector<int> fds;
  const auto add = [&](const std::unique_ptr<Command>& command) {
    if (!command) return;
    const std::vector<int> further = command->fds();
    fds.insert(fds.end(), further.begin(), further.end());
  };
  for (const auto& [place, node] : nodes_) {
    add(node.submit);
    add(node.cancel);
  }
  add(list_);
  return fds;
}

}  // namespace cadre::engine::cluster
