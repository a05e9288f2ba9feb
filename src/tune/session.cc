#include "tune/session.h"

#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/clock.h"
#include "base/directory.h"
#include "base/json.h"
#include "base/library_threads.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "cadre/tune/trainable.h"
#include "checkpoint/checkpoint_files.h"
#include "publish/manifest.h"
#include "storage/remote_directory.h"
#include "store/checkpoint_access.h"
#include "tune/functions.h"
#include "tune/result_keys.h"
#include "worker/entries.h"
#include "worker/given_nodes.h"
#include "worker/reporting.h"
#include "worker/root_engine.h"
#include "worker/wait_for_space.h"
#include "worker/worker.h"

namespace cadre::tune {
namespace fs = std::filesystem;
namespace {

// Running totals that a function may report itself, or as amounts of each iteration.
constexpr std::array kTotals = {result_key::timesteps_total, result_key::episodes_total};

Session* current_session = nullptr;

double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Adds a running total such as timesteps_total, if the result has the amount of this iteration but not the total.
void add_total(Metrics& row, const Metrics& before, std::string_view part, std::string_view total) {
  const Value* value = row.find(part);
  if (value == nullptr || !value->is_integer() || row.contains(total)) return;
  row.set(total, static_cast<std::int64_t>(before.number(total).value_or(0)) + value->get<std::int64_t>());
}

}  // namespace

Session::Session(channel::WorkerEnd& controller, TrialAssignment assignment)
    : controller_(controller),
      assignment_(std::move(assignment)),
      checkpoints_("tune::report", [this](std::int64_t number) { return path_of_checkpoint(number); }),
      hostname_(base::host_name()),
      progress_(progress_at(assignment_)) {
  if (!assignment_.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(assignment_.checkpoint);
  current_session = this;
}

Session::~Session() { current_session = nullptr; }

Session* Session::current() { return current_session; }

Session::Progress Session::progress_at(const TrialAssignment& assignment) {
  const Metrics& saved = assignment.checkpoint_metrics;
  Metrics totals;
  for (const std::string_view total : kTotals) {
    if (const Value* value = saved.find(total)) totals.set(total, *value);
  }
  return {.step = assignment.step,
          .training_iteration = static_cast<std::int64_t>(
              saved.number(result_key::training_iteration).value_or(static_cast<double>(assignment.step))),
          .time_total_s = saved.number(result_key::time_total_s).value_or(0),
          .totals = std::move(totals)};
}

std::uint64_t Session::seed() const {
  return base::RandomStream(static_cast<std::uint64_t>(assignment_.seed), assignment_.trial, base::Purpose::training,
                            static_cast<std::uint64_t>(progress_.step))
      .bits();
}

void Session::check_report(const Metrics& metrics) const {
  checkpoints_.require_own_thread();
  if (told_to_stop_) throw worker::StopWorker{};
  base::check_metrics(metrics);
}

void Session::report(const Metrics& metrics) {
  check_report(metrics);
  send(metrics, nullptr);
}

void Session::report(const Metrics& metrics, const CheckpointWriter& write) {
  check_report(metrics);
  if (!is_to_be_saved(metrics)) return send(metrics, nullptr, &write);
  CheckpointDirectory directory = checkpoints_.fill(write);
  send(metrics, &directory);
}

// Returns true if the result or checkpoint_frequency requires a checkpoint. The controller asks for all others.
bool Session::is_to_be_saved(const Metrics& metrics) const {
  if (is_true(metrics, result_key::should_checkpoint)) return true;
  if (assignment_.checkpoint_at_end && is_true(metrics, result_key::done)) return true;
  if (assignment_.checkpoint_frequency == 0) return false;
  const Value* own = metrics.find(result_key::training_iteration);
  const std::int64_t iteration =
      own != nullptr && own->is_integer() ? own->get<std::int64_t>() : progress_.training_iteration + 1;
  return iteration % assignment_.checkpoint_frequency == 0;
}

void Session::report(const Metrics& metrics, const Checkpoint& checkpoint) {
  check_report(metrics);
  if (CheckpointDirectory* ours = CheckpointAccess::unreported(checkpoint)) return send(metrics, ours);
  CheckpointDirectory copy = checkpoints_.fill([&](const fs::path& directory) { checkpoint.to_directory(directory); });
  send(metrics, &copy);
}

bool Session::forward(const Metrics& metrics, const fs::path& checkpoint) {
  try {
    check_report(metrics);
    if (checkpoint.empty()) {
      send(metrics, nullptr);
    } else {
      CheckpointDirectory ours =
          checkpoints_.fill([&](const fs::path& directory) { checkpoint::link_checkpoint(checkpoint, directory); });
      send(metrics, &ours);
    }
    return true;
  } catch (const worker::StopWorker&) {
    return false;
  }
}

// Keeps the directory's owner and the counters unchanged until the report is on its way: it may be refused.
void Session::send(const Metrics& metrics, CheckpointDirectory* checkpoint, const CheckpointWriter* offer) {
  Progress progress = progress_;
  channel::Report report{.step = ++progress.step,
                         .metrics = complete(metrics, progress),
                         .checkpoint = {},
                         .offers_checkpoint = offer != nullptr};
  channel::Answer answer = exchange(report, checkpoint);
  progress_ = std::move(progress);
  if (answer.verdict == channel::Verdict::save) {
    CheckpointDirectory saved = checkpoints_.fill(*offer);
    report.offers_checkpoint = false;
    answer = exchange(report, &saved);
  }
  iteration_began_ = Clock::now();  // time spent waiting for the controller does not count
  if (!answer.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(answer.checkpoint);
  if (answer.verdict == channel::Verdict::stop) {
    told_to_stop_ = true;
    throw worker::StopWorker{};
  }
  if (answer.verdict == channel::Verdict::take_over) return take_over(to_assignment(answer.assignment));
  if (!answer.assignment.is_null()) take(cadre::from_value<ChangedResources>(answer.assignment));
}

channel::Answer Session::exchange(channel::Report& report, CheckpointDirectory* checkpoint) {
  if (checkpoint != nullptr) {
    const checkpoint::CheckpointMetadata metadata{assignment_.trial_id,
                                                  report.metrics.at(result_key::training_iteration),
                                                  report.metrics.at(result_key::timestamp)};
    worker::wait_for_space([&] { checkpoint::write_metadata(checkpoint->path(), metadata); });
    report.checkpoint = checkpoint->path().filename();
  }
  controller_.send(report);
  if (checkpoint != nullptr) checkpoint->release();
  return controller_.receive_answer();
}

void Session::take_over(TrialAssignment assignment) {
  storage::fetch(assignment.checkpoint);
  assignment_ = std::move(assignment);
  progress_ = progress_at(assignment_);
  latest_checkpoint_.reset();
  if (!assignment_.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(assignment_.checkpoint);
  take_over_();
  iteration_began_ = Clock::now();
}

void Session::take(const ChangedResources& changed) {
  assignment_.resources = changed.resources;
  base::set_library_threads(base::thread_count(changed.own_cpus));
}

// Adds the keys that every result has. Source: the auto-filled keys of Ray Tune's function API.
Metrics Session::complete(const Metrics& metrics, Progress& progress) const {
  Metrics row = metrics;
  const double now = base::wall_seconds();
  const double time = metrics.number(result_key::time_this_iter_s).value_or(seconds(Clock::now() - iteration_began_));
  progress.time_total_s += time;
  progress.time_since_restore_s += time;
  ++progress.training_iteration;
  ++progress.iterations_since_restore;
  row.set(result_key::timestamp, static_cast<std::int64_t>(now));
  add_total(row, progress.totals, result_key::timesteps_this_iter, result_key::timesteps_total);
  add_total(row, progress.totals, result_key::episodes_this_iter, result_key::episodes_total);
  if (!row.contains(result_key::training_iteration))
    row.set(result_key::training_iteration, progress.training_iteration);
  row.set(result_key::trial_id, assignment_.trial_id);
  row.set(result_key::date, base::date_text(now));
  row.set(result_key::time_this_iter_s, time);
  row.set(result_key::time_total_s, progress.time_total_s);
  row.set(result_key::pid, ::getpid());
  row.set(result_key::hostname, hostname_);
  row.set(result_key::node_ip, assignment_.node_ip);
  row.set(result_key::time_since_restore, progress.time_since_restore_s);
  row.set(result_key::iterations_since_restore, progress.iterations_since_restore);
  for (const std::string_view total : kTotals) {
    if (const Value* value = row.find(total)) progress.totals.set(total, *value);
  }
  return row;
}

fs::path Session::path_of_checkpoint(std::int64_t number) const {
  const std::string name = checkpoint::reporting_prefix(assignment_.attempt) + std::to_string(number);
  return directory() / publish::checkpoint_place(name, assignment_.generation);
}

void run_trial(channel::WorkerEnd& controller, const Value& payload, const std::function<void(Session&)>& body) {
  TrialAssignment assignment = to_assignment(payload);
  worker::prepare_process(assignment.visible_devices, assignment.checkpoint,
                          fs::path(assignment.trial_directory).parent_path());
  if (assignment.runs_in_directory) base::enter_directory(assignment.trial_directory);
  if (assignment.worker_resources) worker::set_root_resources(*assignment.worker_resources);
  if (!assignment.worker_nodes.empty()) worker::set_given_nodes(assignment.worker_nodes, controller);
  Session session(controller, std::move(assignment));
  body(session);
}

bool detail::register_trainable(std::string_view name, TrainingPointer function, ConfigType type) {
  trainable_types().add(name, {.config = type});
  return worker::register_entry(name, [function](channel::WorkerEnd& controller, const Value& payload) {
    run_trial(controller, payload, [function](Session& session) { function(session.assignment().config); });
    return Value();
  });
}

const Config& detail::parameters_of_trial() { return Session::current()->assignment().parameters; }

void detail::report_returned(const Metrics& metrics) { report(metrics); }

void detail::report_returned_number(const Value& number) {
  const std::string& metric = Session::current()->assignment().metric;
  report({{metric.empty() ? "_metric" : metric, number}});
}

// ---- The public functions

void report(const Metrics& metrics) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("tune::report");
  session->report(metrics);
}

void report(const Metrics& metrics, const Checkpoint& checkpoint) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("tune::report");
  session->report(metrics, checkpoint);
}

void report(const Metrics& metrics, const CheckpointWriter& write) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("tune::report");
  session->report(metrics, write);
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
  return session == nullptr ? 0 : session->seed();
}

}  // namespace cadre::tune
