#include "train/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "base/directory.h"
#include "base/json.h"
#include "base/retry_delay.h"
#include "base/value_limits.h"
#include "cadre/error.h"
#include "checkpoint/checkpoint_files.h"
#include "publish/manifest.h"
#include "store/checkpoint_access.h"
#include "train/checkpoint_questions.h"
#include "train/group_store.h"
#include "train/part_check.h"
#include "train/validation_check.h"
#include "worker/entries.h"
#include "worker/group_network.h"
#include "worker/host.h"
#include "worker/wait_for_space.h"
#include "worker/worker.h"

namespace cadre::train {
namespace fs = std::filesystem;
namespace {

Session* current_session = nullptr;

// Calls a user's upload function, with retries, and returns its checkpoint.
Checkpoint with_retries(std::int64_t step, const std::function<Checkpoint()>& upload) {
  for (std::int64_t tries = 1;; ++tries) {
    try {
      std::optional<Checkpoint> result;
      worker::wait_for_space([&] { result = upload(); });
      return *std::move(result);
    } catch (const StorageError& error) {
      if (tries == base::most_upload_tries) throw;
      std::fprintf(stderr, "cadre: an upload has failed and is tried again: %s\n", error.what());
      std::this_thread::sleep_for(Seconds(base::upload_retry_delay_s(step, tries)));
    }
  }
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  return *path.lexically_relative(directory).begin() != "..";
}

// Converts a timeout, limited to a year. Throws InvalidArgument if it is negative or not a number.
std::int64_t to_milliseconds(Seconds timeout) {
  constexpr double most = 365.0 * 24 * 3600;
  if (!(timeout.count() >= 0)) throw InvalidArgument(fmt::format("a timeout of {:g} s is none", timeout.count()));
  return std::llround(std::min(timeout.count(), most) * 1e3);
}

// Removes a directory of the user's after its upload. Errors here do not affect the checkpoint, which is committed
// anyway.
void remove_source(const fs::path& directory) {
  try {
    base::remove_tree(directory);
  } catch (const Error& error) {
    std::fprintf(stderr, "cadre: what was uploaded stays: %s\n", error.what());
  }
}

// Runs a worker: forms the group, calls the function, and returns its return value.
Value run_rank(channel::WorkerEnd& controller, const Value& payload,
               const std::function<Value(const RankAssignment&)>& function) {
  RankAssignment assignment = to_assignment(payload);
  worker::prepare_process(assignment.visible_devices, assignment.checkpoint, assignment.run_directory);
  worker::use_network_of(assignment.place);
  if (assignment.runs_in_directory)
    base::enter_directory(fs::path(assignment.run_directory) / directory_of_rank(assignment.place.world_rank));
  Session session(controller, std::move(assignment));
  const RankAssignment& mine = session.assignment();
  worker::GroupBackend* backend = nullptr;
  if (!mine.backend.empty()) {
    backend = worker::find_group_backend(mine.backend);
    if (backend == nullptr) throw Error("this program has no backend \"" + mine.backend + "\" for worker groups");
    backend->join(session.store(), mine.place, mine.backend_options);
  }
  session.say_that_it_begins();
  Value value;
  try {
    value = function(mine);
  } catch (const worker::StopWorker&) {
    session.finish_uploads();
    throw;
  }
  if (backend != nullptr) backend->leave();
  session.finish_uploads();
  if (base::stored_bytes(value) > base::max_stored_value_bytes)
    throw InvalidArgument(
        fmt::format("the function has returned {} bytes; at most {} are stored: put it into a file of "
                    "a checkpoint",
                    base::stored_bytes(value), base::max_stored_value_bytes));
  return value;
}

// No function has such a name.
constexpr const char* kLoopOfHost = "training function of a host";

[[maybe_unused]] const bool knows_loops_of_hosts =
    worker::register_entry(kLoopOfHost, [](channel::WorkerEnd& controller, const Value& payload) {
      return run_rank(controller, payload, [](const RankAssignment& mine) {
        return worker::host_of(mine.run_name).run(mine.function, {mine.config.value()});
      });
    });

}  // namespace

std::string entry_of(const Loop& loop) { return loop.host_function.is_set() ? kLoopOfHost : loop.name; }

Session::Session(channel::WorkerEnd& controller, RankAssignment assignment)
    : controller_(controller),
      assignment_(std::move(assignment)),
      store_(std::make_shared<GroupStore>(controller)),
      checkpoints_("train::report", [this](std::int64_t number) { return path_of_checkpoint(number); }),
      step_(assignment_.step) {
  if (!assignment_.checkpoint.empty()) latest_checkpoint_ = Checkpoint::from_directory(assignment_.checkpoint);
  current_session = this;
  if (assignment_.node) CheckpointAccess::set_source([this](const fs::path& checkpoint) { bring(checkpoint); });
}

Session::~Session() {
  CheckpointAccess::set_source({});
  current_session = nullptr;
}

Session* Session::current() { return current_session; }

void Session::check_report(const Metrics& metrics, const ReportOptions& options) const {
  checkpoints_.require_own_thread();
  if (told_to_stop_) throw worker::StopWorker{};
  base::check_metrics(metrics);
  if (options.checkpoint_upload_mode == CheckpointUploadMode::no_upload && options.checkpoint_upload_function)
    throw InvalidArgument("train::report got no_upload and a checkpoint_upload_function: leave one of them out");
  if (options.until_published && options.checkpoint_upload_mode == CheckpointUploadMode::async)
    throw InvalidArgument("train::report got until_published and async, which returns before: leave one of them out");
  if (options.until_published && assignment_.in_trial)
    throw InvalidArgument(
        "train::report got until_published in a run of a trial, where the experiment is published and not the run: "
        "leave it out");
  check_validation(options);
  const bool is_in_place = options.checkpoint_upload_mode == CheckpointUploadMode::no_upload;
  if (options.checkpoint_dir_name.empty() || is_in_place || assignment_.place.world_rank != 0) return;
  // A directory that another rank may have made is checked once all ranks have reported.
  const bool may_be_begun = options.checkpoint_upload_function || assignment_.place.world_size > 1;
  check_checkpoint_name(options.checkpoint_dir_name, assignment_.run_directory,
                        may_be_begun ? NameCheck::may_be_begun : NameCheck::must_be_free);
}

void Session::check_validation(const ReportOptions& options) const {
  const auto& task = options.validation.task();
  if (!task && options.validate.name.empty()) {
    if (options.validate_config.dict().empty()) return;
    throw InvalidArgument("train::report got a validate_config and no validate: name the validator");
  }
  if (task && !options.validate.name.empty())
    throw InvalidArgument("train::report got validation and validate: leave one of them out");
  if (task && !assignment_.has_validator)
    throw InvalidArgument(
        "train::report got validation, and the trainer has no function for it: set "
        "TrainerOptions::validation, or name one in validate");
  const bool is_of_host = options.validate.host_function.is_set();
  if (!options.validate.name.empty() && !is_of_host && worker::find_entry(options.validate.name) == nullptr)
    throw InvalidArgument("train::report got the validator \"" + options.validate.name +
                          "\", which this program does not have; give it as fn<" + options.validate.name + ">");
  if (task && task->timeout && !(task->timeout->count() > 0))
    throw InvalidArgument(fmt::format("train::report got a validation with a timeout of {:g} s; it must be above 0",
                                      task->timeout->count()));
  const std::optional<Resources>& resources = task ? task->resources : options.validate_resources;
  if (const std::string fault = resources ? fault_of_resources(*resources) : ""; !fault.empty())
    throw InvalidArgument("train::report got a validation with resources that cannot be: " + fault);
  if (options.validate_resources && options.validate.name.empty())
    throw InvalidArgument("train::report got validate_resources and no validate; with validation they are in its task");
  check_validation_config(task ? task->config : options.validate_config,
                          "train::report got a config of its validation");
}

// Returns the validation that a report asks for. The report must have passed check_validation().
std::optional<WantedValidation> Session::wanted_validation(const ReportOptions& options) {
  if (!options.validate.name.empty())
    return WantedValidation{.function = options.validate.name,
                            .host_function = options.validate.host_function,
                            .config = options.validate_config,
                            .resources = options.validate_resources};
  const auto& task = options.validation.task();
  if (!task) return std::nullopt;
  WantedValidation wanted{.config = task->config, .resources = task->resources};
  if (task->timeout) wanted.timeout_s = task->timeout->count();
  return wanted;
}

// Returns what is said of a part of a checkpoint. `directory`: the name that the checkpoint is to have.
PartReport Session::part_report(CheckpointPart part, std::string directory, const ReportOptions& options) {
  return {.part = std::move(part),
          .waits = options.checkpoint_upload_mode != CheckpointUploadMode::async,
          .directory = std::move(directory),
          .validation = wanted_validation(options),
          .until_published = options.until_published};
}

void Session::report(const Metrics& metrics, const ReportOptions& options) {
  if (options.validation.task() || !options.validate.name.empty())
    throw InvalidArgument("train::report got a validation and no checkpoint: there is nothing to validate");
  check_report(metrics, options);
  send(metrics, {.directory = options.checkpoint_dir_name});
}

void Session::report(const Metrics& metrics, const CheckpointWriter& write, const ReportOptions& options) {
  check_report(metrics, options);
  if (options.checkpoint_upload_mode == CheckpointUploadMode::no_upload)
    throw InvalidArgument(
        "train::report got no_upload and a function that writes: write into the run's directory before");
  CheckpointDirectory ours = checkpoints_.fill(write);
  if (options.checkpoint_upload_function)
    return report_by_function(metrics, Checkpoint::from_directory(std::move(ours)), options);
  report_ours(metrics, ours, options);
}

void Session::report(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options) {
  check_report(metrics, options);
  if (options.checkpoint_upload_mode == CheckpointUploadMode::no_upload)
    return report_in_place(metrics, checkpoint.path(), options);
  if (options.checkpoint_upload_function) return report_by_function(metrics, checkpoint, options);
  if (CheckpointDirectory* ours = CheckpointAccess::unreported(checkpoint)) return report_ours(metrics, *ours, options);
  report_theirs(metrics, checkpoint.path(), options);
}

void Session::report_ours(const Metrics& metrics, CheckpointDirectory& checkpoint, const ReportOptions& options,
                          const fs::path& source) {
  kept_states_.write(checkpoint.path());
  checkpoint::list_files(checkpoint.path());  // throws if the controller could not commit it
  send(metrics, part_report({.path = checkpoint.path().filename()}, options.checkpoint_dir_name, options), source,
       &checkpoint);
}

void Session::report_theirs(const Metrics& metrics, const fs::path& checkpoint, const ReportOptions& options) {
  const fs::path source = fs::absolute(checkpoint).lexically_normal();
  checkpoint::list_files(source);
  const bool remove = deletes(source, options);
  if (remove) {
    if (auto moved = take_over(source)) return report_ours(metrics, *moved, options);
  }
  const bool is_async = options.checkpoint_upload_mode == CheckpointUploadMode::async;
  if (is_async && assignment_.is_on_node) return report_copied_here(metrics, source, remove, options);
  if (is_async) {
    kept_states_.write(source);
    return send(metrics, part_report({.kind = CheckpointPart::Kind::borrowed, .path = source, .remove_source = remove},
                                     options.checkpoint_dir_name, options));
  }
  CheckpointDirectory copy = checkpoints_.fill([&](const fs::path& directory) { base::copy_tree(source, directory); });
  report_ours(metrics, copy, options, remove ? source : fs::path());
}

// Copies in a thread of this process: the controller may not see the directory.
void Session::report_copied_here(const Metrics& metrics, const fs::path& source, bool remove,
                                 const ReportOptions& options) {
  kept_states_.write(source);
  const auto copy = std::make_shared<CheckpointDirectory>(make_checkpoint_directory());
  const std::int64_t step = step_ + 1;
  const fs::path target = copy->path();
  finish_later(
      [=](PromiseEnd&) {
        with_retries(step, [&] {
          // Removes what an earlier try has left, but not the directory: the controller looks for that meanwhile.
          for (const std::string& name : base::list_directory(target)) base::remove_tree(target / name);
          base::copy_tree(source, target);
          return Checkpoint::from_directory(target);
        });
        if (remove) remove_source(source);
      },
      [copy] { copy->release(); });
  send(metrics, part_report({.kind = CheckpointPart::Kind::copying, .path = target.filename()},
                            options.checkpoint_dir_name, options));
}

void Session::report_in_place(const Metrics& metrics, const fs::path& checkpoint, const ReportOptions& options) {
  const fs::path inside = path_inside(assignment_.run_directory, checkpoint, "train::report with no_upload got");
  if (!options.checkpoint_dir_name.empty() && options.checkpoint_dir_name != inside)
    throw InvalidArgument(fmt::format(
        "train::report with no_upload got the directory {} and the checkpoint_dir_name \"{}\": with no_upload a "
        "directory keeps its name, so leave checkpoint_dir_name out",
        inside.string(), options.checkpoint_dir_name));
  checkpoint::list_files(assignment_.run_directory / inside);
  kept_states_.write(assignment_.run_directory / inside);
  send(metrics, part_report({.kind = CheckpointPart::Kind::in_place, .path = inside}, "", options));
}

void Session::report_by_function(const Metrics& metrics, const Checkpoint& checkpoint, const ReportOptions& options) {
  const std::int64_t step = step_ + 1;
  const std::string name = options.checkpoint_dir_name.empty()
                               ? fmt::format("{}_{}", checkpoint::checkpoint_name(step), assignment_.attempt)
                               : options.checkpoint_dir_name;
  const bool remove = CheckpointAccess::unreported(checkpoint) == nullptr && deletes(checkpoint.path(), options);
  kept_states_.write(checkpoint.path());
  // The captured copy of the checkpoint keeps a directory of Cadre's alive until the function has returned.
  const auto upload = [=, root = fs::path(assignment_.run_directory)] {
    const Checkpoint result = with_retries(step, [&] { return options.checkpoint_upload_function(checkpoint, name); });
    return path_inside(root, result.path(), "checkpoint_upload_function has returned");
  };
  if (options.checkpoint_upload_mode == CheckpointUploadMode::sync) {
    return send(metrics, part_report({.kind = CheckpointPart::Kind::in_place, .path = upload()}, name, options),
                remove ? checkpoint.path() : fs::path());
  }
  finish_later([=](PromiseEnd& end) {
    end.path = upload();
    if (remove) remove_source(checkpoint.path());
  });
  send(metrics, part_report({.kind = CheckpointPart::Kind::promised}, name, options));
}

// Calls `finish`, which finishes the checkpoint of the next report, in another thread, then tells the controller.
void Session::finish_later(std::function<void(PromiseEnd&)> finish, std::function<void()> has_succeeded) {
  const auto end = std::make_shared<PromiseEnd>(PromiseEnd{.step = step_ + 1});
  uploads_.begin(
      [=] {
        try {
          finish(*end);
        } catch (...) {
          end->error = worker::describe_current_exception();
        }
      },
      [end, has_succeeded = std::move(has_succeeded), &controller = controller_] {
        if (end->error.empty()) has_succeeded();
        try {
          controller.send(channel::Notice{to_value(Notice(*end))});
        } catch (const channel::ControllerGone&) {  // NOLINT(bugprone-empty-catch): the main thread notices too
        }
      });
}

bool Session::deletes(const fs::path& checkpoint, const ReportOptions& options) const {
  const fs::path source = fs::weakly_canonical(checkpoint);
  const fs::path run = fs::weakly_canonical(assignment_.run_directory);
  const bool lies_in_run = is_inside(source, run);
  const bool remove = options.delete_local_checkpoint_after_upload.value_or(
      options.checkpoint_upload_mode == CheckpointUploadMode::async && !lies_in_run);
  if (remove && (lies_in_run || is_inside(run, source)))
    throw InvalidArgument(fmt::format(
        "train::report is to delete {} after the upload, {} the run's directory {}: set "
        "delete_local_checkpoint_after_upload to false, or report what make_checkpoint_directory() has given",
        checkpoint.string(), lies_in_run ? "which lies in" : "which holds", assignment_.run_directory));
  return remove;
}

// Moves a directory of the user's that may be moved; empty: it must be copied.
std::optional<CheckpointDirectory> Session::take_over(const fs::path& source) {
  if (::access(source.c_str(), W_OK) != 0) return std::nullopt;
  CheckpointDirectory moved = make_checkpoint_directory();
  std::error_code elsewhere;
  fs::rename(source, moved.path(), elsewhere);
  if (elsewhere) return std::nullopt;
  return moved;
}

// `source`: a directory of the user's, which is removed when the checkpoint is committed; empty: there is none.
void Session::send(const Metrics& metrics, PartReport said, const fs::path& source, CheckpointDirectory* ours) {
  if (said.part) said.part->node = assignment_.node;
  const bool sends_metrics = assignment_.place.world_rank == 0 || assignment_.sends_metrics;
  channel::Report report{.step = step_ + 1, .metrics = sends_metrics ? metrics : Metrics()};
  put_into(report, said);
  controller_.send(report);
  if (ours != nullptr) ours->release();
  const channel::Answer answer = controller_.receive_answer();
  ++step_;
  // Ranks that are told to stop before the commit get none.
  if (!answer.checkpoint.empty()) {
    latest_checkpoint_ = Checkpoint::from_directory(answer.checkpoint);
    if (!source.empty()) remove_source(source);
  }
  if (answer.verdict != channel::Verdict::stop) return;
  told_to_stop_ = true;
  throw worker::StopWorker{};
}

fs::path Session::path_of_checkpoint(std::int64_t number) const {
  const std::string name =
      fmt::format("{}{}_{}", checkpoint::reporting_prefix(assignment_.attempt), assignment_.place.world_rank, number);
  return fs::path(assignment_.run_directory) / publish::checkpoint_place(name, assignment_.generation);
}

std::vector<ReportedCheckpoint> Session::get_all_reported_checkpoints(CheckpointConsistency consistency,
                                                                      std::optional<Seconds> timeout) {
  CheckpointQuestion question{.step = step_, .validated = consistency == CheckpointConsistency::validated};
  if (timeout) question.timeout_ms = to_milliseconds(*timeout);
  const channel::Reply reply = controller_.call(channel::Request{to_value(question)});
  if (!reply.error.empty()) throw Error("train::get_all_reported_checkpoints: " + reply.error);
  std::vector<ReportedCheckpoint> reported;
  for (CheckpointEntry& entry : to_checkpoint_entries(reply.content))
    reported.push_back(to_reported_checkpoint(std::move(entry), assignment_.run_directory));
  return reported;
}

std::optional<Checkpoint> Session::latest_checkpoint() const {
  if (latest_checkpoint_) CheckpointAccess::make_readable(latest_checkpoint_->path());
  return latest_checkpoint_;
}

// Has the controller send a checkpoint of the run, if it is one, to this node.
void Session::bring(const fs::path& checkpoint) const {
  const fs::path inside = checkpoint.lexically_relative(assignment_.run_directory);
  if (inside.empty() || *inside.begin() == "..") return;
  const channel::Reply reply = controller_.call(channel::Request{to_value(CheckpointQuestion{.lacks = inside})});
  if (!reply.error.empty()) throw StorageError(reply.error);
}

// ---- Collectives, with keys that every rank counts in the same way

std::string Session::next_collective(const char* name) { return fmt::format("cadre/{}/{}", name, ++collectives_); }

void Session::set_for_collective(const std::string& key, const std::string& value) {
  store_->set(key, value);
  own_keys_.push_back(key);
}

void Session::meet(const std::string& key, const char* name) {
  const worker::KeyValueStore::Milliseconds patience(assignment_.collective_timeout_ms);
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
    if (!missing.empty())  // otherwise the last rank came just after the timeout
      throw Error(fmt::format("train::{} has waited {:g} s for rank {}", name,
                              static_cast<double>(patience.count()) / 1e3, fmt::join(missing, ", ")));
  }
  // All ranks have arrived, so none is still waiting for the previous collective.
  for (const std::string& old : previous_keys_) store_->erase(old);
  previous_keys_ = std::exchange(own_keys_, {});
}

void Session::say_that_it_begins() { controller_.send(channel::Notice{to_value(Notice(FunctionBegins{}))}); }

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

// ---- Registration

base::Registry<cadre::detail::ConfigStruct>& loop_structs() {
  static base::Registry<cadre::detail::ConfigStruct> instance;
  return instance;
}

bool detail::register_loop(std::string_view name, LoopPointer function, cadre::detail::ConfigStruct config) {
  loop_structs().add(name, config);
  return worker::register_entry(name, [function](channel::WorkerEnd& controller, const Value& payload) {
    return run_rank(controller, payload, [function](const RankAssignment& mine) { return function(mine.config); });
  });
}

}  // namespace cadre::train
