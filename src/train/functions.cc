// What a training function calls (cadre/train.h), on the session of its worker.
#include <cstdio>
#include <utility>

#include "cadre/error.h"
#include "cadre/train.h"
#include "train/session.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

// Where a report goes; nullptr outside a worker, which is said once.
Session* here() {
  static bool warned = false;
  Session* const session = Session::current();
  if (session == nullptr && !std::exchange(warned, true))
    std::fputs("cadre: train::report was called outside a worker; results go nowhere\n", stderr);
  return session;
}

}  // namespace

void report(const Metrics& metrics) { report(metrics, ReportOptions{}); }

void report(const Metrics& metrics, const ReportOptions& options) {
  if (Session* session = here()) session->report(metrics, options);
}

void report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options) {
  if (Session* session = here()) session->report(metrics, checkpoint, options);
}

void report(const Metrics& metrics, const CheckpointWriter& write, const ReportOptions& options) {
  if (Session* session = here()) session->report(metrics, write, options);
}

std::optional<Checkpoint> get_checkpoint() {
  const Session* session = Session::current();
  return session == nullptr ? std::nullopt : session->latest_checkpoint();
}

std::vector<ReportedCheckpoint> get_all_reported_checkpoints(CheckpointConsistency, std::optional<Seconds> timeout) {
  Session* session = Session::current();
  if (session == nullptr) return {};
  return session->get_all_reported_checkpoints(timeout);
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

run::GroupPlace place() {
  const Session* session = Session::current();
  return session == nullptr ? run::GroupPlace{} : session->assignment().place;
}

}  // namespace

TrainContext get_context() { return {}; }
std::int64_t TrainContext::get_world_rank() const { return place().world_rank; }
std::int64_t TrainContext::get_world_size() const { return place().world_size; }
std::int64_t TrainContext::get_local_rank() const { return place().local_rank; }
std::int64_t TrainContext::get_local_world_size() const { return place().local_world_size; }
std::int64_t TrainContext::get_node_rank() const { return place().node_rank; }

std::string TrainContext::get_experiment_name() const {
  const Session* session = Session::current();
  return session == nullptr ? "" : session->assignment().run_name;
}

fs::path TrainContext::get_storage() const {
  const Session* session = Session::current();
  return session == nullptr ? fs::path() : fs::path(session->assignment().run_directory);
}

Resources TrainContext::get_resources() const {
  const Session* session = Session::current();
  return session == nullptr ? Resources{} : session->assignment().resources;
}

}  // namespace cadre::train
