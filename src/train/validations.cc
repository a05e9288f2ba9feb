#include "train/validations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/retry_delay.h"

namespace cadre::train {
namespace {

using State = Validation::State;

bool is_finished(State state) { return state != State::waiting && state != State::running && state != State::pausing; }

// Returns the resources of a validator and of the workers that it may start.
Resources sum_of(const ValidationConfig& config, const Resources& own) {
  PlacementGroup group = config.workers;
  group.bundles.push_back(own);
  return group.required_resources();
}

// Returns the entries of both; those of `more` override.
template <class Values>
Values merged(Values values, const Values& more) {
  for (const auto& [name, value] : more) values.set(name, value);
  return values;
}

}  // namespace

Validations::Validations(const ValidationConfig& config) : config_(config), needs_(sum_of(config, config.resources)) {}

Resources Validations::needs_of(const Validation& validation) const {
  const std::optional<Resources>& own = validation.wanted.resources;
  return own ? sum_of(config_, *own) : needs_;
}

// ---- From a checkpoint's commit to its metrics

void Validations::add(checkpoint::CheckpointId id, const WantedValidation& wanted, Checkpoints& checkpoints) {
  Validation& validation = recorded_.validations[id];
  validation = {.wanted = wanted, .reported = checkpoints.registry().get(id).metrics};
  if (wanted.function.empty()) {
    validation.wanted.function = config_.function.name;
    validation.wanted.host_function = config_.function.host_function;
    validation.wanted.config = merged(config_.config, wanted.config);
  }
  if (!wanted.timeout_s && config_.timeout) validation.wanted.timeout_s = config_.timeout->count();
}

void Validations::returned(const ValidatorReturned& event, Checkpoints& checkpoints, Actions& actions) {
  Validation* const validation = present(event.checkpoint, event.attempt);
  if (validation == nullptr) return;
  validation->metrics = event.metrics;
  finish(event.checkpoint, State::validated, checkpoints, actions);
}

void Validations::threw(const ValidatorThrew& event, Checkpoints& checkpoints, Actions& actions) {
  const Validation* const validation = present(event.checkpoint, event.attempt);
  if (validation == nullptr) return;
  if (!event.is_hopeless) return fail(event.checkpoint, event.message, checkpoints, actions);
  const std::string& function = validation->wanted.function;
  recorded_.hopeless[function] = event.message;
  actions.push_back(
      Say{fmt::format("No validation by {} can succeed, so none is begun any more: {}", function, event.message)});
  give_up(event.checkpoint, event.message, checkpoints, actions);
}

void Validations::ended(const ValidatorEnded& event, Checkpoints& checkpoints, Actions& actions) {
  const auto found = recorded_.validations.find(event.checkpoint);
  if (found == recorded_.validations.end() || found->second.attempt != event.attempt) return;
  Validation& validation = found->second;
  validation.has_worker = false;
  if (validation.is_forgotten) {
    recorded_.validations.erase(found);
    return;
  }
  if (validation.state != State::running) return;
  if (event.exit.kind == engine::Exit::Kind::node_lost && !validation.is_late) {  // no failure of its own
    validation.state = State::waiting;
    actions.push_back(
        Say{fmt::format("The validation of {} begins again: its worker {}",
                        checkpoints.registry().get(event.checkpoint).directory, engine::to_string(event.exit))});
    return;
  }
  const std::string reason = validation.is_late
                                 ? fmt::format("it took more than {:g} s", *validation.wanted.timeout_s)
                                 : "its worker " + engine::to_string(event.exit) + engine::output_text(event.exit);
  fail(event.checkpoint, reason, checkpoints, actions);
}

void Validations::timed_out(checkpoint::CheckpointId id, Actions& actions) {
  recorded_.validations.at(id).is_late = true;
  actions.push_back(KillValidator{id, recorded_.validations.at(id).attempt});
}

void Validations::try_again(checkpoint::CheckpointId id) { recorded_.validations.at(id).state = State::waiting; }

void Validations::fail(checkpoint::CheckpointId id, const std::string& reason, Checkpoints& checkpoints,
                       Actions& actions) {
  Validation& validation = recorded_.validations.at(id);
  validation.error = reason;
  ++validation.failures;
  if (config_.max_retries >= 0 && validation.failures > config_.max_retries)
    return finish(id, validation.is_late ? State::timed_out : State::failed, checkpoints, actions);
  const double delay = base::retry_delay_s(validation.failures);
  validation.state = delay > 0 ? State::pausing : State::waiting;
  if (delay > 0) actions.push_back(StartTimer{{Timer::Kind::validation_retry, id}, delay});
  const std::string when = delay > 0 ? fmt::format(" in {:g} s", delay) : "";
  actions.push_back(Say{fmt::format("The validation of {} has failed in try {}, and is tried again{}: {}",
                                    checkpoints.registry().get(id).directory, validation.failures, when, reason)});
}

// Fails it without another try.
void Validations::give_up(checkpoint::CheckpointId id, const std::string& reason, Checkpoints& checkpoints,
                          Actions& actions) {
  recorded_.validations.at(id).error = reason;
  finish(id, State::failed, checkpoints, actions);
}

void Validations::finish(checkpoint::CheckpointId id, State state, Checkpoints& checkpoints, Actions& actions) {
  Validation& validation = recorded_.validations.at(id);
  validation.state = state;
  if (state == State::validated) ++recorded_.succeeded;
  if (state == State::failed || state == State::timed_out) {
    ++recorded_.failed;
    recorded_.last_error = validation.error;
  }
  const std::string directory = checkpoints.registry().get(id).directory;
  actions.push_back(RecordDecision{
      DecisionKind::finish_validation,
      {{"checkpoint", directory}, {"status", to_string(status_of(&validation))}, {"tries", validation.attempt}}});
  if (state == State::validated) validation.error.clear();
  Metrics metrics = merged(validation.reported, validation.metrics);
  actions.push_back(ShowValidation{.checkpoint = directory,
                                   .step = checkpoints.registry().get(id).step,
                                   .status = status_of(&validation),
                                   .metrics = metrics,
                                   .reported = validation.reported,
                                   .validated = validation.metrics,
                                   .error = validation.error});
  checkpoints.complete(id, std::move(metrics));
}

void Validations::resume() {
  std::erase_if(recorded_.validations, [](const auto& entry) { return entry.second.is_forgotten; });
  for (auto& [id, validation] : recorded_.validations) {
    validation.has_worker = false;
    validation.is_late = false;
    if (!is_finished(validation.state)) validation.state = State::waiting;
  }
}

void Validations::forget(checkpoint::CheckpointId id) {
  const auto found = recorded_.validations.find(id);
  if (found == recorded_.validations.end()) return;
  if (found->second.has_worker) {
    found->second.is_forgotten = true;
  } else {
    recorded_.validations.erase(found);
  }
}

void Validations::stop(Actions& actions) {
  for (auto& [id, validation] : recorded_.validations) {
    if (validation.state != State::running) continue;
    validation.state = State::waiting;
    actions.push_back(KillValidator{id, validation.attempt});
  }
}

// ---- Starts

void Validations::start(resources::Cluster room, Checkpoints& checkpoints, Actions& actions) {
  occupy(room);
  for (const checkpoint::CheckpointId id : waiting()) {
    Validation& validation = recorded_.validations.at(id);
    if (validation.state != State::waiting) continue;  // skipped in this loop
    if (const auto hopeless = recorded_.hopeless.find(validation.wanted.function);
        hopeless != recorded_.hopeless.end()) {
      give_up(id, hopeless->second, checkpoints, actions);
      continue;
    }
    const std::int64_t running =
        std::ranges::count_if(recorded_.validations, [](const auto& entry) { return entry.second.has_worker; });
    if (config_.max_in_flight && running >= *config_.max_in_flight) return;
    const Resources needs = needs_of(validation);
    const std::string missing = room.may_change() ? "" : room.shortage(needs);
    if (!missing.empty()) {  // never fits
      give_up(id, "it needs more than the machine has: " + missing, checkpoints, actions);
      continue;
    }
    std::optional<resources::Place> place = room.acquire(needs);
    if (!place) return say_that_it_waits(id, room, checkpoints, actions);
    validation.state = State::running;
    validation.has_worker = true;
    validation.is_late = false;
    validation.place = *std::move(place);
    ++validation.attempt;
    const std::string directory = checkpoints.registry().get(id).directory;
    Dict started{{"checkpoint", directory}, {"try", validation.attempt}};
    if (room.may_change()) {
      started.emplace_back("id", id);
      started.emplace_back("node", validation.place.node);
    }
    actions.push_back(RecordDecision{DecisionKind::validate, std::move(started)});
    actions.push_back(StartValidator{.id = id,
                                     .attempt = validation.attempt,
                                     .checkpoint = directory,
                                     .wanted = validation.wanted,
                                     .place = validation.place,
                                     .machine = room.node(validation.place.node).resources});
    if (validation.wanted.timeout_s)
      actions.push_back(StartTimer{{Timer::Kind::validation, id}, *validation.wanted.timeout_s});
    if (config_.order == ValidationOrder::newest_first) skip_older(id, checkpoints, actions);
  }
}

std::vector<Resources> Validations::waiting_needs() const {
  const std::int64_t running =
      std::ranges::count_if(recorded_.validations, [](const auto& entry) { return entry.second.has_worker; });
  std::vector<Resources> needs;
  for (const checkpoint::CheckpointId id : waiting()) {
    if (config_.order == ValidationOrder::newest_first && !needs.empty()) break;
    if (config_.max_in_flight && running + std::ssize(needs) >= *config_.max_in_flight) break;
    needs.push_back(needs_of(recorded_.validations.at(id)));
  }
  return needs;
}

// Prints once that a validation waits for resources. Silent while other validations run: then it just waits its turn.
void Validations::say_that_it_waits(checkpoint::CheckpointId id, const resources::Cluster& room,
                                    const Checkpoints& checkpoints, Actions& actions) {
  if (has_said_that_it_waits_ || has_workers()) return;
  has_said_that_it_waits_ = true;
  actions.push_back(Say{fmt::format(
      "The validation of {} waits for room: {} are in use. It begins when the training has ended, if not before.",
      checkpoints.registry().get(id).directory, room.usage())});
}

// Returns the validations to start next, in order; without those whose last worker has not ended.
std::vector<checkpoint::CheckpointId> Validations::waiting() const {
  std::vector<checkpoint::CheckpointId> ids;
  for (const auto& [id, validation] : recorded_.validations) {
    if (validation.state == State::waiting && !validation.has_worker) ids.push_back(id);
  }
  if (config_.order == ValidationOrder::newest_first) std::ranges::reverse(ids);
  return ids;
}

// Skips older validations that have never been started.
void Validations::skip_older(checkpoint::CheckpointId id, Checkpoints& checkpoints, Actions& actions) {
  std::vector<checkpoint::CheckpointId> stale;
  for (const auto& [other, validation] : recorded_.validations) {
    if (other < id && validation.state == State::waiting && validation.attempt == 0) stale.push_back(other);
  }
  for (const checkpoint::CheckpointId other : stale) finish(other, State::skipped, checkpoints, actions);
}

// ---- Queries

void Validations::occupy(resources::Cluster& room) const {
  for (const auto& [id, validation] : recorded_.validations) {
    if (validation.has_worker) room.occupy(needs_of(validation), validation.place);
  }
}

bool Validations::has_workers() const {
  return std::ranges::any_of(recorded_.validations, [](const auto& entry) { return entry.second.has_worker; });
}

bool Validations::is_pending() const {
  return std::ranges::any_of(recorded_.validations, [](const auto& entry) { return !is_finished(entry.second.state); });
}

bool Validations::is_pending(checkpoint::CheckpointId id) const {
  const Validation* const validation = find(id);
  return validation != nullptr && !is_finished(validation->state);
}

std::string Validations::summary() const {
  if (recorded_.succeeded > 0 || recorded_.failed == 0) return {};
  return recorded_.failed == 1
             ? "Its only validation has failed: " + recorded_.last_error
             : fmt::format("None of its {} validations has succeeded. The last one has failed with: {}",
                           recorded_.failed, recorded_.last_error);
}

bool Validations::is_running(checkpoint::CheckpointId id) const {
  const Validation* const validation = find(id);
  return validation != nullptr && validation->state == State::running;
}

const Validation* Validations::find(checkpoint::CheckpointId id) const {
  const auto found = recorded_.validations.find(id);
  return found == recorded_.validations.end() ? nullptr : &found->second;
}

bool Validations::is_pausing(checkpoint::CheckpointId id) const {
  const Validation* const validation = find(id);
  return validation != nullptr && validation->state == State::pausing;
}

Validation* Validations::present(checkpoint::CheckpointId id, std::int64_t attempt) {
  const auto found = recorded_.validations.find(id);
  if (found == recorded_.validations.end()) return nullptr;
  const bool is_present = found->second.state == State::running && found->second.attempt == attempt;
  return is_present ? &found->second : nullptr;
}

ReportedCheckpointStatus status_of(const Validation* validation) {
  if (validation == nullptr) return ReportedCheckpointStatus::committed;
  switch (validation->state) {
    case State::waiting:
    case State::running:
    case State::pausing:
      return ReportedCheckpointStatus::pending_validation;
    case State::validated:
      return ReportedCheckpointStatus::validated;
    case State::timed_out:
      return ReportedCheckpointStatus::validation_timed_out;
    case State::failed:
      return ReportedCheckpointStatus::validation_failed;
    case State::skipped:
      break;
  }
  return ReportedCheckpointStatus::committed;
}

}  // namespace cadre::train
