#include "engine/cluster/slurm_jobs.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/retry_delay.h"
#include "base/seconds.h"
#include "cadre/error.h"

namespace cadre::engine::cluster {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr auto kMostTime = seconds(30);  // of a command
constexpr auto kListWhileWaiting = seconds(5);
constexpr auto kListOtherwise = seconds(30);
constexpr auto kListSoon = seconds(1);     // after a change
constexpr auto kCancelAgain = seconds(1);  // after a command that could not be started

steady_clock::duration job_retry_delay(std::int64_t failures) {
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(1 + base::retry_delay_s(failures)));
}

void check_version(const slurm::Variables& own) {
  std::unique_ptr<Command> command;
  const std::string needed = fmt::format("Slurm {}.{} or newer is needed", slurm::kOldestYear, slurm::kOldestMonth);
  try {
    command = std::make_unique<Command>(
        CommandStart{.arguments = {"sbatch", "--version"}, .environment = slurm::job_environment(own, {})});
  } catch (const EngineError& error) {
    throw EngineError(fmt::format("there is no Slurm: {}; {}, with its commands in PATH", error.what(), needed));
  }
  const auto deadline = steady_clock::now() + kMostTime;
  while (!command->update() && steady_clock::now() < deadline) {
    std::vector<::pollfd> watched;
    for (const int fd : command->fds()) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    ::poll(watched.data(), watched.size(), 1000);
  }
  if (!command->has_ended())
    throw EngineError(fmt::format("sbatch --version has not ended after {} s: run it in a shell to see why; {}",
                                  kMostTime.count(), needed));
  if (!command->has_succeeded())
    throw EngineError(fmt::format("sbatch does not say its version ({}); {}", slurm::said(command->errors()), needed));
  if (const std::string fault = slurm::fault_of_version(command->output()); !fault.empty()) throw EngineError(fault);
}

}  // namespace

SlurmJobs::SlurmJobs(std::string experiment, slurm::Variables own)
    : experiment_(std::move(experiment)), own_(std::move(own)) {
  check_version(own_);
}

std::unique_ptr<Command> SlurmJobs::run(slurm::Words words, std::string input, slurm::Variables added) const {
  auto command = std::make_unique<Command>(CommandStart{.arguments = std::move(words),
                                                        .environment = slurm::job_environment(own_, added),
                                                        .directory = {},
                                                        .input = std::move(input)});
  command->kill_at(Clock::now() + kMostTime);
  return command;
}

void SlurmJobs::request(const NodeRequest& request, const AgentStart& start) {
  if (const std::string faults = slurm::faults_of(request); !faults.empty()) {
    events_.push_back(Refused{.request = request.id, .reason = faults});
    return;
  }
  if (start.over_stdio) {
    events_.push_back(Refused{.request = request.id, .reason = "a job that Slurm queues has no input and output here"});
    return;
  }
  Request& made = requests_[request.id];
  made.asked = request;
  made.start = start;
  submit(request.id, made);
}

void SlurmJobs::submit(std::uint64_t /*id*/, Request& request) {
  request.next = TimePoint::max();
  request.submitted = Clock::now();
  try {
    request.submission = run(slurm::submit_command(request.asked, request.start, experiment_),
                             slurm::submit_script(request.asked, request.start), request.start.variables);
  } catch (const EngineError& error) {
    try_again(request, error.what());
  }
}

void SlurmJobs::try_again(Request& request, const std::string& why) {
  ++request.failures;
  request.next = Clock::now() + job_retry_delay(request.failures);
  if (why != request.told) events_.push_back(Queued{.request = request.asked.id, .reason = why});
  request.told = why;
}

void SlurmJobs::look_at_submission(Request& request) {
  if (!request.submission->update()) return;
  const std::unique_ptr<Command> command = std::move(request.submission);
  const std::string errors(command->errors());
  if (command->has_succeeded() && slurm::submitted_job(command->output())) {
    request.is_submitted = true;
    request.submitted = Clock::now();
    list_within(request.is_released || !request.released.empty() ? Clock::duration::zero() : kListSoon);
  } else if (slurm::is_unreachable(errors) || command->end().starts_with("signal")) {
    request.may_be_there = true;  // its answer may have been lost
    list_within(Clock::duration::zero());
    try_again(request, slurm::said(errors).empty() ? "sbatch does not answer" : slurm::said(errors));
  } else {
    events_.push_back(Refused{.request = request.asked.id, .reason = slurm::said(errors)});
    request.is_released = true;
    request.ended.insert(-1);
  }
}

void SlurmJobs::release(std::uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  found->second.is_released = true;
  found->second.released_at = Clock::now();
  found->second.is_release_listed = false;
  list_within(Clock::duration::zero());
}

void SlurmJobs::release(std::uint64_t request, std::int64_t ordinal) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  Request& given = found->second;
  given.released.insert(ordinal);
  given.released_at = Clock::now();
  given.is_release_listed = false;
  given.is_released = given.is_released || static_cast<std::int64_t>(given.released.size()) >= given.asked.nodes;
  list_within(Clock::duration::zero());
}

void SlurmJobs::claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& /*processes*/) {
  for (const auto& [request, ended] : requests) {
    Request& claimed = requests_[request.id];
    claimed.asked = request;
    claimed.ended = ended;
    claimed.is_submitted = claimed.is_seen = true;  // if it was not, the list lacks it
  }
  cancels_others_ = true;
  list_within(Clock::duration::zero());
}

bool SlurmJobs::is_giving_back() const {
  return !to_cancel_.empty() || (cancels_others_ && !others_are_cancelled_) ||
         std::ranges::any_of(requests_, [](const auto& entry) {
           const Request& request = entry.second;
           return (request.is_released || !request.released.empty()) && !request.is_release_listed;
         });
}

void SlurmJobs::look_soon() { list_within(Clock::duration::zero()); }

void SlurmJobs::list_within(Clock::duration time) { list_.next = std::min(list_.next, Clock::now() + time); }

bool SlurmJobs::is_given_back(const Request& request, std::optional<std::int64_t> ordinal) {
  return request.is_released || (ordinal && request.released.contains(*ordinal));
}

bool SlurmJobs::is_over(const Request& request) {
  return request.ended.contains(-1) || static_cast<std::int64_t>(request.ended.size()) >= request.asked.nodes;
}

// -1 stands for all nodes.
void SlurmJobs::end(Request& request, std::optional<std::int64_t> ordinal, const std::string& reason) {
  if (request.ended.insert(ordinal.value_or(-1)).second)
    events_.push_back(AgentEnded{.request = request.asked.id, .ordinal = ordinal, .reason = reason});
}

void SlurmJobs::start_errands() {
  const TimePoint now = Clock::now();
  try {
    if (!list_.command && now >= list_.next) {
      list_.started = now;
      list_.next = TimePoint::max();
      list_.command = run(slurm::list_command(), "", {{"SLURM_TIME_FORMAT", "%s"}});
    }
    if (!cancellation_.command && !to_cancel_.empty() &&
        (cancellation_.next == TimePoint::max() || now >= cancellation_.next)) {
      cancellation_.next = now + kCancelAgain;
      cancellation_.command = run(slurm::cancel_command({to_cancel_.begin(), to_cancel_.end()}), "", {});
      cancellation_.next = TimePoint::max();
      being_cancelled_ = to_cancel_;
    }
  } catch (const EngineError&) {  // no free processes or descriptors for the moment, or Slurm's commands are gone
    list_within(kListSoon);
  }
}

void SlurmJobs::look_at_cancellation() {
  if (!cancellation_.command || !cancellation_.command->update()) return;
  const bool is_done =
      cancellation_.command->has_succeeded() || !slurm::is_unreachable(cancellation_.command->errors());
  cancellation_.command.reset();
  cancellation_.failures = is_done ? 0 : cancellation_.failures + 1;
  // A list says what has not ended; that is cancelled again.
  if (is_done) {
    for (const std::string& job : being_cancelled_) to_cancel_.erase(job);  // others may have come meanwhile
    list_within(kListSoon);
  } else {
    cancellation_.next = Clock::now() + job_retry_delay(cancellation_.failures);
  }
}

void SlurmJobs::look_at_list() {
  if (!list_.command || !list_.command->update()) return;
  const std::unique_ptr<Command> command = std::move(list_.command);
  if (!command->has_succeeded() || command->is_output_cut()) {
    ++list_.failures;
    list_within(job_retry_delay(list_.failures));
    return;
  }
  list_.failures = 0;
  const std::vector<slurm::Job> jobs = slurm::parse_jobs(command->output(), experiment_);
  if (cancels_others_) cancel_others(jobs);
  std::map<std::uint64_t, std::vector<const slurm::Job*>> by_request;
  for (const slurm::Job& job : jobs) by_request[job.request].push_back(&job);
  bool waits = false;
  for (auto& [id, request] : requests_) {
    const std::vector<const slurm::Job*>& its_jobs = by_request[id];
    compare(request, its_jobs);
    waits = waits || !request.is_submitted || std::ranges::any_of(its_jobs, [&](const slurm::Job* job) {
              return !job->has_ended() && (job->waits() || is_given_back(request, job->ordinal));
            });
  }
  if (!requests_.empty() || !to_cancel_.empty())
    list_within(waits || !to_cancel_.empty() ? kListWhileWaiting : kListOtherwise);
}

// A request is forgotten only after its jobs have ended, so all others are of an earlier process. Every list is looked
// at: a job that was submitted as that process was killed may come late.
void SlurmJobs::cancel_others(const std::vector<slurm::Job>& jobs) {
  for (const slurm::Job& job : jobs) {
    if (!requests_.contains(job.request) && !job.has_ended() && job.state != "COMPLETING") to_cancel_.insert(job.id);
  }
  others_are_cancelled_ = true;
}

// Compares a request with the jobs of its name in a list.
void SlurmJobs::compare(Request& request, const std::vector<const slurm::Job*>& jobs) {
  if (!request.is_submitted && request.may_be_there && !request.submission && list_.started > request.submitted) {
    request.may_be_there = false;
    request.is_submitted = std::ranges::any_of(jobs, [](const slurm::Job* job) { return !job->has_ended(); });
  }
  if (!request.is_submitted) return;
  std::set<std::int64_t> listed;
  for (const slurm::Job* job : jobs) {
    listed.insert(job->ordinal.value_or(-1));
    if (job->has_ended()) end(request, job->ordinal, job->description());
    if (job->runs()) tell_limit(request, *job);
    if (!job->has_ended() && job->state != "COMPLETING" && is_given_back(request, job->ordinal))
      to_cancel_.insert(job->id);
  }
  if (list_.started >= request.released_at) request.is_release_listed = true;
  tell_waiting(request, jobs);
  if (list_.started <= request.submitted) return;  // the list may be older than the job
  const std::string gone = "Slurm does not know its job any longer";
  if (jobs.empty()) {
    end(request, std::nullopt, gone);
  } else if (!listed.contains(-1)) {
    for (std::int64_t ordinal = 0; ordinal < request.asked.nodes; ++ordinal) {
      if (request.is_seen && !listed.contains(ordinal)) end(request, ordinal, gone);
    }
  }
  request.is_seen = true;
}

void SlurmJobs::tell_limit(Request& request, const slurm::Job& job) {
  const double now = base::wall_seconds();
  Limit& limit = request.limits.try_emplace(job.ordinal.value_or(-1), Limit{.seen = now}).first->second;
  const std::optional<double> left = slurm::seconds_left({.start = job.start, .end = job.end}, now, limit.seen);
  std::optional<TimePoint> at;
  if (left) at = Clock::now() + base::to_nanoseconds(std::chrono::duration<double>(*left));
  const bool is_told =
      at && limit.told ? std::chrono::abs(*at - *limit.told) < same_limit : at.has_value() == limit.told.has_value();
  if (is_told) return;
  limit.told = at;
  events_.push_back(NodeEnds{.request = request.asked.id, .ordinal = job.ordinal, .at = at});
}

void SlurmJobs::tell_waiting(Request& request, const std::vector<const slurm::Job*>& jobs) {
  const auto waiting = std::ranges::find_if(jobs, [](const slurm::Job* job) { return job->waits(); });
  if (waiting == jobs.end() || request.is_released) return;
  const slurm::Job& job = **waiting;
  const std::string told = fmt::format("{} {}", job.reason, job.start.value_or(0));
  if (told != request.told)
    events_.push_back(Queued{.request = request.asked.id,
                             .reason = job.reason.empty() ? "not looked at yet" : job.reason,
                             .expected_start = job.start});
  request.told = told;
}

std::vector<ProviderEvent> SlurmJobs::take_events() {
  for (auto& [id, request] : requests_) {
    if (request.submission) look_at_submission(request);
    if (request.is_submitted || request.submission || request.may_be_there) continue;
    if (request.is_released) {
      end(request, std::nullopt, "given back");
    } else if (Clock::now() >= request.next) {
      submit(id, request);
    }
  }
  look_at_list();
  look_at_cancellation();
  start_errands();
  std::erase_if(requests_, [](const auto& entry) { return is_over(entry.second); });
  return std::exchange(events_, {});
}

std::optional<SlurmJobs::TimePoint> SlurmJobs::next_look() const {
  if (!events_.empty()) return Clock::now();
  TimePoint next = list_.command ? list_.command->kill_time() : list_.next;
  if (cancellation_.command) next = std::min(next, cancellation_.command->kill_time());
  if (!cancellation_.command && !to_cancel_.empty())
    next = std::min(next, cancellation_.next == TimePoint::max() ? Clock::now() : cancellation_.next);
  for (const auto& [id, request] : requests_) {
    if (request.submission) next = std::min(next, request.submission->kill_time());
    if (!request.submission && !request.is_submitted && !request.may_be_there) next = std::min(next, request.next);
  }
  if (next == TimePoint::max()) return std::nullopt;
  return next;
}

std::vector<int> SlurmJobs::fds() const {
  std::vector<int> fds;
  const auto add = [&](const std::unique_ptr<Command>& command) {
    if (!command) return;
    const std::vector<int> further = command->fds();
    fds.insert(fds.end(), further.begin(), further.end());
  };
  for (const auto& [id, request] : requests_) add(request.submission);
  add(list_.command);
  add(cancellation_.command);
  return fds;
}

}  // namespace cadre::engine::cluster
