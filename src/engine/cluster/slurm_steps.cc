#include "engine/cluster/slurm_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/retry_delay.h"
#include "cadre/error.h"
#include "engine/cluster/ordinal.h"

namespace cadre::engine::cluster {
namespace {

using std::chrono::steady_clock;

constexpr auto kTimeToEnd = std::chrono::seconds(30);
constexpr auto kTimeToAnswer = std::chrono::seconds(30);
constexpr auto kLimitPeriod = std::chrono::seconds(60);

steady_clock::duration step_retry_delay(std::int64_t failures) {
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(1 + base::retry_delay_s(failures)));
}

}  // namespace

SlurmSteps::SlurmSteps(slurm::Variables own) : own_(std::move(own)), begun_(base::wall_seconds()) {
  if (!slurm::is_in_allocation(own_))
    throw InvalidArgument(
        "steps need a Slurm allocation: SLURM_JOB_ID is not set; start the program with sbatch or salloc");
  if (const auto span = slurm::allocation_span(own_)) {
    set_limit(*span);
    next_question_ = steady_clock::now() + kLimitPeriod;
  }
}

void SlurmSteps::request(const NodeRequest& request, const AgentStart& start) {
  if (const std::string faults = slurm::faults_of(request, start.over_stdio); !faults.empty())
    return refuse(request.id, faults);
  const std::optional<std::int64_t> allocated = slurm::allocated_nodes(own_);
  if (allocated && request.nodes > *allocated)
    return refuse(request.id, fmt::format("the allocation has {} nodes, not {}", *allocated, request.nodes));
  const bool together = request.all_or_none && !start.over_stdio;  // one input cannot be that of several agents
  const std::int64_t count = together ? 1 : request.nodes;
  for (std::int64_t ordinal = 0; ordinal < count; ++ordinal) {
    auto step = std::make_unique<Step>(Step{.request = request, .start = start});
    if (together) {
      step->released.resize(static_cast<std::size_t>(request.nodes));
    } else {
      step->ordinal = ordinal;
    }
    this->start(*step);
    steps_.push_back(std::move(step));
  }
  // srun says so itself, but only after a minute.
  if (allocated && nodes_in_use() > *allocated)
    events_.push_back(
        Queued{.request = request.id, .reason = fmt::format("all {} nodes of the allocation are in use", *allocated)});
}

std::int64_t SlurmSteps::nodes_in_use() const {
  std::int64_t nodes = 0;
  for (const auto& step : steps_) nodes += step->ordinal ? 1 : step->request.nodes;
  return nodes;
}

void SlurmSteps::start(Step& step) {
  slurm::Variables added = step.start.variables;
  if (step.ordinal) added[kOrdinalVariable] = std::to_string(*step.ordinal);
  const bool together = !step.ordinal && step.request.nodes > 1;
  if (!step.ordinal && !together) added[kOrdinalVariable] = "0";
  step.next = TimePoint::max();
  try {
    step.command = std::make_unique<Command>(CommandStart{
        .arguments =
            slurm::step_command(step.request, step.start, together ? step.request.nodes : 1, slurm::is_in_step(own_)),
        .environment = slurm::step_environment(own_, added, step.start.over_stdio),
        .directory = {},
        .input = {},
        .carries_session = step.start.over_stdio,
        .death_signal = step.start.outlives ? 0 : SIGTERM});
    if (step.start.over_stdio)
      connections_.push_back({step.request.id, step.ordinal.value_or(0), step.command->take_session()});
  } catch (const EngineError& error) {
    try_again(step, error.what());
  }
}

void SlurmSteps::try_again(Step& step, const std::string& why) {
  ++step.failures;
  step.command.reset();
  step.next = steady_clock::now() + step_retry_delay(step.failures);
  events_.push_back(Queued{.request = step.request.id, .reason = why});
}

// srun takes SIGTERM for an order to kill the step at once.
void SlurmSteps::end(Step& step) {
  if (step.is_ending) return;
  step.is_ending = true;
  if (!step.command) return;
  step.command->kill(SIGTERM);
  step.command->kill_at(steady_clock::now() + kTimeToEnd);
}

void SlurmSteps::release(std::uint64_t request) {
  for (const auto& step : steps_) {
    if (step->request.id == request) end(*step);
  }
}

void SlurmSteps::release(std::uint64_t request, std::int64_t ordinal) {
  for (const auto& step : steps_) {
    if (step->request.id != request) continue;
    if (step->ordinal == ordinal) end(*step);
    if (step->ordinal || ordinal < 0 || static_cast<std::size_t>(ordinal) >= step->released.size()) continue;
    step->released[static_cast<std::size_t>(ordinal)] = true;
    if (std::ranges::all_of(step->released, [](bool is_released) { return is_released; })) end(*step);
  }
}

void SlurmSteps::claim(const std::vector<KeptRequest>& requests, const std::vector<NodeProcess>& processes) {
  using Place = std::pair<std::uint64_t, std::optional<std::int64_t>>;
  std::map<Place, const NodeProcess*> found;
  for (const NodeProcess& process : processes) found[{process.request, process.ordinal}] = &process;
  const auto take_over = [&](const NodeProcess& process, Step step) {
    step.command = Command::take_over(static_cast<::pid_t>(process.pid), process.mark);
    if (step.command == nullptr) return false;
    step.start.mark = process.mark;
    steps_.push_back(std::make_unique<Step>(std::move(step)));
    return true;
  };
  for (const auto& [request, ended] : requests) {
    for (std::int64_t number = 0; number < (request.all_or_none ? 1 : request.nodes); ++number) {
      if (ended.contains(number)) continue;
      Step step{.request = request};
      if (request.all_or_none) {
        step.released.resize(static_cast<std::size_t>(request.nodes));
      } else {
        step.ordinal = number;
      }
      const Place place(request.id, step.ordinal);
      const auto process = found.extract(place);
      if (!process || !take_over(*process.mapped(), std::move(step)))
        events_.push_back(AgentEnded{.request = place.first,
                                     .ordinal = place.second,
                                     .reason = "its srun has ended",  // and perhaps not the step
                                     .is_certain = false});
    }
  }
  for (const auto& [place, process] : found) {  // that nobody claims
    const NodeRequest request{.id = place.first};
    if (take_over(*process, Step{.request = request, .ordinal = place.second, .released = {}})) end(*steps_.back());
  }
}

std::vector<NodeProcess> SlurmSteps::processes() const {
  std::vector<NodeProcess> all;
  for (const auto& step : steps_) {
    if (step->command && !step->command->has_ended() && !step->is_ending)
      all.push_back({.request = step->request.id,
                     .ordinal = step->ordinal,
                     .pid = step->command->process(),
                     .mark = step->start.mark});
  }
  return all;
}

bool SlurmSteps::is_giving_back() const {
  return std::ranges::any_of(steps_, [](const auto& step) { return step->is_ending && step->command != nullptr; });
}

bool SlurmSteps::look(Step& step) {
  if (!step.command) {
    if (step.is_ending) {
      events_.push_back(AgentEnded{.request = step.request.id, .ordinal = step.ordinal, .reason = "given back"});
      return false;
    }
    if (steady_clock::now() >= step.next) start(step);
    return true;
  }
  const bool has_ended = step.command->update();
  const std::string errors(step.command->errors());
  if (!has_ended) {
    if (std::string waits_for = slurm::waiting_step(errors); waits_for != step.waits_for) {
      step.waits_for = std::move(waits_for);
      if (!step.waits_for.empty()) events_.push_back(Queued{.request = step.request.id, .reason = step.waits_for});
    }
    return true;
  }
  if (slurm::is_allocation_over(errors)) {
    ends_ = std::min(ends_.value_or(steady_clock::now()), steady_clock::now());
  } else if (!step.is_ending && slurm::is_step_refused(errors)) {
    if (slurm::is_unreachable(errors)) {
      try_again(step, slurm::said(errors));
      return true;
    }
    refuse(step.request.id, slurm::said(errors));
    return false;
  }
  events_.push_back(AgentEnded{.request = step.request.id,
                               .ordinal = step.ordinal,
                               .reason = step.command->end_of("srun", slurm::said(errors)),
                               .is_certain = step.command->has_succeeded() || slurm::has_task_ended(errors)});
  return false;
}

void SlurmSteps::refuse(std::uint64_t request, const std::string& reason) {
  events_.push_back(Refused{.request = request, .reason = reason});
}

// ---- The time limit

void SlurmSteps::set_limit(const slurm::Span& span) {
  const std::optional<double> left = slurm::seconds_left(span, base::wall_seconds(), begun_);
  ends_.reset();
  if (left)
    ends_ =
        steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(*left));
}

void SlurmSteps::look_soon() { next_question_ = TimePoint::min(); }

void SlurmSteps::look_at_limit() {
  const TimePoint now = steady_clock::now();
  if (question_) {
    if (!question_->update()) return;
    const std::unique_ptr<Command> answer = std::move(question_);
    if (const auto span = slurm::parse_span(answer->output()); span && answer->has_succeeded()) set_limit(*span);
  }
  if (now < next_question_) return;
  next_question_ = now + kLimitPeriod;
  try {
    question_ = std::make_unique<Command>(
        CommandStart{.arguments = slurm::span_command(own_),
                     .environment = slurm::step_environment(own_, {{"SLURM_TIME_FORMAT", "%s"}})});
    question_->kill_at(now + kTimeToAnswer);
  } catch (const EngineError&) {  // no squeue, or no free processes or descriptors for the moment
  }
}

std::vector<ProviderEvent> SlurmSteps::take_events() {
  look_at_limit();
  std::erase_if(steps_, [&](const std::unique_ptr<Step>& step) { return !look(*step); });
  return std::exchange(events_, {});
}

std::optional<SlurmSteps::TimePoint> SlurmSteps::next_look() const {
  if (!events_.empty()) return steady_clock::now();
  TimePoint next = question_ ? question_->kill_time() : next_question_;
  for (const auto& step : steps_) {
    const TimePoint without_command = step->is_ending ? steady_clock::now() : step->next;
    next = std::min(next, step->command ? step->command->kill_time() : without_command);
  }
  if (next == TimePoint::max()) return std::nullopt;
  return next;
}

std::vector<int> SlurmSteps::fds() const {
  std::vector<int> fds;
  const auto add = [&](const std::unique_ptr<Command>& command) {
    if (!command) return;
    const std::vector<int> further = command->fds();
    fds.insert(fds.end(), further.begin(), further.end());
  };
  add(question_);
  for (const auto& step : steps_) add(step->command);
  return fds;
}

}  // namespace cadre::engine::cluster
