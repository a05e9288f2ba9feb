// The functions that a training function calls (cadre/train.h), implemented with the session of its worker.
#include "base/directory.h"
#include "cadre/error.h"
#include "cadre/train.h"
#include "train/part_check.h"
#include "train/session.h"
#include "train/validator.h"
#include "worker/reporting.h"

namespace cadre::train {
namespace fs = std::filesystem;
void report(const Metrics& metrics) { report(metrics, ReportOptions{}); }

void report(const Metrics& metrics, const ReportOptions& options) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("train::report");
  session->report(metrics, options);
}

void report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("train::report");
  session->report(metrics, checkpoint, options);
}

void report(const Metrics& metrics, const CheckpointWriter& write, const ReportOptions& options) {
  Session* session = Session::current();
  if (session == nullptr) return worker::report_nowhere("train::report");
  session->report(metrics, write, options);
}

std::optional<Checkpoint> get_checkpoint() {
  const Session* session = Session::current();
  return session == nullptr ? std::nullopt : session->latest_checkpoint();
}

std::vector<ReportedCheckpoint> get_all_reported_checkpoints(CheckpointConsistency consistency,
                                                             std::optional<Seconds> timeout) {
  Session* session = Session::current();
  if (session == nullptr) return {};
  return session->get_all_reported_checkpoints(consistency, timeout);
}

CheckpointDirectory make_checkpoint_directory() {
  Session* session = Session::current();
  if (session == nullptr) throw Error("train::make_checkpoint_directory was called outside a worker");
  return session->make_checkpoint_directory();
}

void barrier() {
  if (Session* session = Session::current()) session->barrier();
}

Value broadcast_from_rank_zero(const Value& value) {
  Session* session = Session::current();
  return session == nullptr ? value : session->broadcast_from_rank_zero(value);
}

namespace {

worker::GroupPlace place() {
  const Session* session = Session::current();
  return session == nullptr ? worker::GroupPlace{} : session->assignment().place;
}

// Returns a value of this process's assignment, a rank's or a validator's; elsewhere that of an empty assignment.
template <class Get>
auto of_worker(Get get) {
  if (const Session* session = Session::current()) return get(session->assignment());
  if (const ValidatorAssignment* validator = current_validator()) return get(*validator);
  return get(ValidatorAssignment{});
}

}  // namespace

TrainContext get_context() { return {}; }
std::int64_t TrainContext::get_world_rank() const { return place().world_rank; }
std::int64_t TrainContext::get_world_size() const { return place().world_size; }
std::int64_t TrainContext::get_local_rank() const { return place().local_rank; }
std::int64_t TrainContext::get_local_world_size() const { return place().local_world_size; }
std::int64_t TrainContext::get_node_rank() const { return place().node_rank; }

std::string TrainContext::get_experiment_name() const {
  return of_worker([](const auto& assignment) { return assignment.run_name; });
}

StorageContext TrainContext::get_storage() const {
  return StorageContext(of_worker([](const auto& assignment) { return assignment.run_directory; }));
}

Resources TrainContext::get_resources() const {
  return of_worker([](const auto& assignment) { return assignment.resources; });
}

fs::path StorageContext::build_checkpoint_path_from_name(const std::string& name) const {
  if (path_.empty()) throw Error("build_checkpoint_path_from_name was called outside a worker: there is no run");
  check_checkpoint_name(name, path_, NameCheck::may_be_begun);
  fs::path directory = path_ / name;
  base::make_directories(directory);
  return directory;
}

}  // namespace cadre::train
