#include "train/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "base/json.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "run/checkpoint_files.h"
#include "run/entries.h"
#include "run/worker.h"
#include "store/checkpoint_access.h"
#include "store/held_objects.h"
#include "train/group_store.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

Session* current_session = nullptr;

void warn_once_outside() {
  static bool warned = false;
  if (std::exchange(warned, true)) return;
  std::fputs("cadre: train::report was called outside a worker; results go nowhere\n", stderr);
}

// A worker's entry: forms the group, runs the function, and gives back what it has returned.
Value run_rank(channel::WorkerEnd& controller, const Value& payload, detail::LoopPointer function) {
  RankAssignment assignment = to_assignment(payload);
  if (assignment.visible_devices) ::setenv("CUDA_VISIBLE_DEVICES", assignment.visible_devices->c_str(), 1);
  store::set_experiment_of_objects(assignment.run_directory);
  Session session(controller, std::move(assignment));
  const RankAssignment& mine = session.assignment();
  run::GroupBackend* backend = nullptr;
  if (!mine.backend.empty()) {
    backend = run::find_group_backend(mine.backend);
    if (backend == nullptr) throw Error("this program has no backend \"" + mine.backend + "\" for worker groups");
    backend->join(session.store(), mine.place, mine.backend_options);
  }
  Value value = function(mine.config);
  if (backend != nullptr) backend->leave();
  if (base::stored_bytes(value) > base::max_stored_value_bytes)
    throw InvalidArgument(
        fmt::format("the function has returned {} bytes; at most {} are stored: put it into a file of "
                    "a checkpoint",
                    base::stored_bytes(value), base::max_stored_value_bytes));
  return value;
}

}  // namespace

Session::Session(channel::WorkerEnd& controller, RankAssignment assignment)
    : controller_(controller),
      assignment_(std::move(assignment)),
      store_(std::make_shared<GroupStore>(controller, connection_)),
      step_(assignment_.step) {
  if (!assignment_.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(assignment_.checkpoint);
  current_session = this;
}

Session::~Session() { current_session = nullptr; }

Session* Session::current() { return current_session; }

void Session::require_own_thread() const {
  if (std::this_thread::get_id() == thread_) return;
  throw Error("train::report was called in another thread than the training function's; call it in that one");
}

void Session::check_report(const Metrics& metrics) const {
  require_own_thread();
  if (told_to_stop_) throw run::StopWorker{};
  base::check_metrics(metrics);
}

void Session::report(const Metrics& metrics, std::optional<CheckpointDirectory> checkpoint) {
  check_report(metrics);
  send(metrics, checkpoint ? &*checkpoint : nullptr);
}

void Session::report(const Metrics& metrics, const Checkpoint& checkpoint) {
  check_report(metrics);
  if (CheckpointDirectory* ours = CheckpointAccess::unreported(checkpoint)) return send(metrics, ours);
  CheckpointDirectory copy({});
  wait_for_space([&] {
    copy = make_checkpoint_directory();
    base::copy_tree(checkpoint.path(), copy.path());
  });
  send(metrics, &copy);
}

void Session::send(const Metrics& metrics, CheckpointDirectory* checkpoint) {
  channel::Report report{
      .step = step_ + 1, .metrics = assignment_.place.world_rank == 0 ? metrics : Metrics(), .checkpoint = {}};
  if (checkpoint != nullptr) report.checkpoint = checkpoint->path().filename();
  channel::Answer answer;
  {
    const std::lock_guard lock(connection_);
    controller_.send(report);
    if (checkpoint != nullptr) checkpoint->release();
    answer = controller_.receive_answer();
  }
  ++step_;
  if (!answer.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(answer.checkpoint);
  if (answer.verdict != channel::Verdict::stop) return;
  told_to_stop_ = true;
  throw run::StopWorker{};
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

// A full disk is no fault of the run: it waits like everybody else.
void Session::wait_for_space(const std::function<void()>& act) {
  for (bool told = false;; told = true) {
    try {
      return act();
    } catch (const OutOfSpace& error) {
      if (!told) std::fprintf(stderr, "cadre: the disk is full, and this rank waits: %s\n", error.what());
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
}

CheckpointDirectory Session::make_checkpoint_directory() {
  require_own_thread();
  const fs::path path =
      fs::path(assignment_.run_directory) / fmt::format("{}{}_{}", run::reporting_prefix(assignment_.attempt),
                                                        assignment_.place.world_rank, directories_made_++);
  if (!base::make_directory(path)) {  // left by a controller that was interrupted in the same attempt
    base::remove_tree(path);
    base::make_directory(path);
  }
  return CheckpointDirectory(path);
}

// ---- Collectives, by keys that every rank numbers alike

std::string Session::next_collective(const char* name) { return fmt::format("cadre/{}/{}", name, ++collectives_); }

void Session::set_for_collective(const std::string& key, const std::string& value) {
  store_->set(key, value);
  own_keys_.push_back(key);
}

void Session::meet(const std::string& key, const char* name) {
  const run::KeyValueStore::Milliseconds patience(assignment_.collective_timeout_ms);
  const std::int64_t world_size = assignment_.place.world_size;
  set_for_collective(fmt::format("{}/{}", key, assignment_.place.world_rank), "");
  std::vector<std::string> keys;
  for (std::int64_t rank = 0; rank < world_size; ++rank) keys.push_back(fmt::format("{}/{}", key, rank));
  try {
    store_->wait(keys, patience);
  } catch (const Error&) {
    std::vector<std::int64_t> missing;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      if (!store_->contains(std::span(&keys[static_cast<std::size_t>(rank)], 1))) missing.push_back(rank);
    }
    if (!missing.empty())  // else it came in the last moment
      throw Error(fmt::format("train::{} has waited {:g} s for rank {}", name,
                              static_cast<double>(patience.count()) / 1e3, fmt::join(missing, ", ")));
  }
  // All have come here, so nobody waits for the collective before any more.
  for (const std::string& old : previous_keys_) store_->erase(old);
  previous_keys_ = std::exchange(own_keys_, {});
}

void Session::barrier() { meet(next_collective("barrier"), "barrier"); }

Value Session::broadcast_from_rank_zero(const Value& value) {
  const bool is_source = assignment_.place.world_rank == 0;
  if (is_source && base::stored_bytes(value) > base::max_stored_value_bytes)
    throw InvalidArgument(fmt::format("train::broadcast_from_rank_zero got {} bytes; it takes at most {}",
                                      base::stored_bytes(value), base::max_stored_value_bytes));
  const std::string key = next_collective("broadcast");
  if (is_source) set_for_collective(key, to_json(value));
  meet(key + "/met", "broadcast_from_rank_zero");
  return base::parse_json(store_->get(key, std::chrono::milliseconds(0)), key);
}

// ---- The public functions

bool detail::register_loop(std::string_view name, LoopPointer function) {
  run::register_entry(name, [function](channel::WorkerEnd& controller, const Value& payload) {
    return run_rank(controller, payload, function);
  });
  return true;
}

void report(const Metrics& metrics) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  session->report(metrics, std::nullopt);
}

void report(const Metrics& metrics, const Checkpoint& checkpoint) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  session->report(metrics, checkpoint);
}

void report(const Metrics& metrics, const CheckpointWriter& write) {
  Session* session = Session::current();
  if (session == nullptr) return warn_once_outside();
  session->report(metrics, session->fill(write));
}

std::optional<Checkpoint> get_checkpoint() {
  const Session* session = Session::current();
  return session == nullptr ? std::nullopt : session->latest_checkpoint();
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
