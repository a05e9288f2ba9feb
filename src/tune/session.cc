#include "tune/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/directory.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "cadre/tune/trainable.h"
#include "run/checkpoint_files.h"
#include "run/entries.h"
#include "run/worker.h"
#include "store/checkpoint_access.h"
#include "tune/functions.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLargestValueBytes = std::size_t{1} << 20;

Session* current_session = nullptr;

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

double number_or(const Metrics& metrics, std::string_view key, double fallback) {
  const Value* value = metrics.find(key);
  return value != nullptr && value->is_number() ? value->get<double>() : fallback;
}

// A running total such as timesteps_total, when its part of this iteration is reported.
void add_total(Metrics& row, const Metrics& before, std::string_view part, std::string_view total) {
  const Value* value = row.find(part);
  if (value == nullptr || !value->is_integer() || row.contains(total)) return;
  row.set(total, static_cast<std::int64_t>(number_or(before, total, 0)) + value->get<std::int64_t>());
}

std::size_t size_of(const Value& value) {
  if (value.is_string()) return value.get<std::string>().size();
  return value.is_dict() || value.is_list() ? to_json(value).size() : 0;
}

void check(const Metrics& metrics) {
  std::string faults;
  for (const auto& [name, value] : metrics) {
    if (name.empty()) faults += "\n  a metric has an empty name";
    if (base::is_deeper_than(value, base::max_result_depth - 1)) {
      faults += fmt::format("\n  metric \"{}\" is nested deeper than {} levels of lists and dictionaries", name,
                            base::max_result_depth - 1);
      continue;
    }
    if (size_of(value) > kLargestValueBytes)
      faults += fmt::format(
          "\n  metric \"{}\" has {} bytes; at most {} are stored with a result: put it into a file of "
          "the checkpoint",
          name, size_of(value), kLargestValueBytes);
  }
  if (!faults.empty()) throw InvalidArgument("report was given what cannot be stored:" + faults);
}

void warn_once_outside() {
  static bool warned = false;
  if (std::exchange(warned, true)) return;
  std::fputs("cadre: tune::report was called outside a trial; results go nowhere\n", stderr);
}

}  // namespace

Session::Session(channel::WorkerEnd& controller, TrialAssignment assignment)
    : controller_(controller),
      assignment_(std::move(assignment)),
      hostname_(base::host_name()),
      step_(assignment_.step),
      training_iteration_(static_cast<std::int64_t>(
          number_or(assignment_.checkpoint_metrics, "training_iteration", static_cast<double>(assignment_.step)))),
      time_total_s_(number_or(assignment_.checkpoint_metrics, "time_total_s", 0)) {
  if (!assignment_.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(assignment_.checkpoint);
  current_session = this;
}

Session::~Session() { current_session = nullptr; }

Session* Session::current() { return current_session; }

void Session::require_own_thread() const {
  if (std::this_thread::get_id() == thread_) return;
  throw Error("tune::report was called in another thread than the training function's; call it in that one");
}

void Session::report(const Metrics& metrics, const Checkpoint* checkpoint) {
  require_own_thread();
  if (told_to_stop_) throw run::StopWorker{};
  check(metrics);
  CheckpointDirectory staged({});
  if (checkpoint != nullptr) wait_for_space([&] { staged = stage(*checkpoint); });
  channel::Report report{.step = ++step_, .metrics = complete(metrics), .checkpoint = {}};
  if (checkpoint != nullptr) {
    const run::CheckpointMetadata metadata{assignment_.trial_id, report.metrics.at("training_iteration"),
                                           report.metrics.at("timestamp")};
    wait_for_space([&] { run::write_metadata(staged.path(), metadata); });
    report.checkpoint = staged.release().filename();
  }

  const channel::Answer answer = controller_.report(report);
  iteration_began_ = Clock::now();  // while the controller let this trial wait, its time stood still
  if (!answer.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(answer.checkpoint);
  if (answer.verdict == channel::Verdict::stop) {
    told_to_stop_ = true;
    throw run::StopWorker{};
  }
}

CheckpointDirectory Session::fill(const CheckpointWriter& write) {
  CheckpointDirectory directory({});
  wait_for_space([&] {
    directory = CheckpointDirectory({});  // what a full disk left unfinished goes first
    directory = make_checkpoint_directory();
    write(directory.path());
  });
  return directory;
}

// A full disk is no fault of the trial: it waits like everybody else.
void Session::wait_for_space(const std::function<void()>& act) {
  for (bool told = false;; told = true) {
    try {
      return act();
    } catch (const OutOfSpace& error) {
      if (!told) std::fprintf(stderr, "cadre: the disk is full, and this trial waits: %s\n", error.what());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

// Adds what every result has. Source: the auto-filled keys of Ray Tune's function API.
Metrics Session::complete(const Metrics& metrics) {
  Metrics row = metrics;
  const double now = base::wall_seconds();
  const double time = number_or(metrics, "time_this_iter_s", seconds(Clock::now() - iteration_began_));
  time_total_s_ += time;
  time_since_restore_s_ += time;
  ++training_iteration_;
  ++iterations_since_restore_;
  row.set("timestamp", static_cast<std::int64_t>(now));
  add_total(row, assignment_.checkpoint_metrics, "timesteps_this_iter", "timesteps_total");
  add_total(row, assignment_.checkpoint_metrics, "episodes_this_iter", "episodes_total");
  if (!row.contains("training_iteration")) row.set("training_iteration", training_iteration_);
  row.set("trial_id", assignment_.trial_id);
  row.set("date", base::date_text(now));
  row.set("time_this_iter_s", time);
  row.set("time_total_s", time_total_s_);
  row.set("pid", ::getpid());
  row.set("hostname", hostname_);
  row.set("node_ip", "127.0.0.1");
  row.set("time_since_restore", time_since_restore_s_);
  row.set("iterations_since_restore", iterations_since_restore_);
  for (const char* total : {"timesteps_total", "episodes_total"}) {
    if (const Value* value = row.find(total)) assignment_.checkpoint_metrics.set(total, *value);
  }
  return row;
}

CheckpointDirectory Session::make_checkpoint_directory() {
  require_own_thread();
  const fs::path path = fs::path(assignment_.trial_directory) /
                        (run::reporting_prefix(assignment_.attempt) + std::to_string(directories_made_++));
  if (!base::make_directory(path)) {  // left by a controller that was interrupted in the same attempt
    base::remove_tree(path);
    base::make_directory(path);
  }
  return CheckpointDirectory(path);
}

// The checkpoint as a directory of Cadre's inside the trial's.
CheckpointDirectory Session::stage(const Checkpoint& checkpoint) {
  CheckpointDirectory directory = CheckpointAccess::take(checkpoint);
  if (!directory.path().empty()) return directory;
  directory = make_checkpoint_directory();
  base::copy_tree(checkpoint.path(), directory.path());
  return directory;
}

namespace {

void run_trial(detail::TrainingFunction function, channel::WorkerEnd& controller, const Value& payload) {
  TrialAssignment assignment = to_assignment(payload);
  if (assignment.visible_devices) ::setenv("CUDA_VISIBLE_DEVICES", assignment.visible_devices->c_str(), 1);
  Session session(controller, std::move(assignment));
  function(session.assignment().config);
}

}  // namespace

bool detail::register_trainable(std::string_view name, TrainingFunction function, ConfigType type) {
  config_types().add(name, type);
  run::register_entry(name, [function](channel::WorkerEnd& controller, const Value& payload) {
    run_trial(function, controller, payload);
  });
  return true;
}

// ---- The public functions

void report(const Metrics& metrics) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  session->report(metrics, nullptr);
}

void report(const Metrics& metrics, const Checkpoint& checkpoint) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  session->report(metrics, &checkpoint);
}

void report(const Metrics& metrics, const CheckpointWriter& write) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  const Checkpoint checkpoint = Checkpoint::from_directory(session->fill(write));
  session->report(metrics, &checkpoint);
}

std::optional<Checkpoint> get_checkpoint() {
  const Session* session = Session::current();
  return session == nullptr ? std::nullopt : session->latest_checkpoint();
}

CheckpointDirectory make_checkpoint_directory() {
  Session* session = Session::current();
  if (session == nullptr) throw Error("tune::make_checkpoint_directory was called outside a trial");
  return session->make_checkpoint_directory();
}

TuneContext get_context() { return {}; }

std::string TuneContext::get_experiment_name() const {
  const Session* session = Session::current();
  return session == nullptr ? "" : session->assignment().experiment_name;
}

std::string TuneContext::get_trial_id() const {
  const Session* session = Session::current();
  return session == nullptr ? "" : session->assignment().trial_id;
}

std::string TuneContext::get_trial_name() const {
  const Session* session = Session::current();
  return session == nullptr ? "" : session->assignment().trial_name;
}

fs::path TuneContext::get_trial_dir() const {
  const Session* session = Session::current();
  return session == nullptr ? fs::path() : fs::path(session->assignment().trial_directory);
}

Resources TuneContext::get_trial_resources() const {
  const Session* session = Session::current();
  return session == nullptr ? Resources{} : session->assignment().resources;
}

std::uint64_t TuneContext::get_seed() const {
  const Session* session = Session::current();
  return session == nullptr ? 0 : static_cast<std::uint64_t>(session->assignment().seed);
}

}  // namespace cadre::tune
