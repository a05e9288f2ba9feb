#include "train.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cadre/stored.h"
#include "cadre/train.h"
#include "cadre/train_callback.h"
#include "errors.h"
#include "signals.h"
#include "train/options.h"
#include "train/session.h"
#include "values.h"
#include "worker/gpu_claims.h"
#include "worker/parent_run.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

nb::object text(const std::filesystem::path& path) { return to_python(Value(path.string())); }

nb::object path_or_none(const std::optional<Checkpoint>& checkpoint) {
  return checkpoint ? text(checkpoint->path()) : nb::none();
}

nb::dict to_dict(const train::ReportedCheckpoint& checkpoint) {
  nb::dict found;
  found["checkpoint"] = text(checkpoint.checkpoint.path());
  found["metrics"] = to_python(checkpoint.metrics.value());
  found["status"] = to_string(checkpoint.status);
  found["validation_error"] = to_python(Value(checkpoint.validation_error));
  return found;
}

nb::list to_list(const std::vector<train::ReportedCheckpoint>& checkpoints) {
  nb::list found;
  for (const train::ReportedCheckpoint& checkpoint : checkpoints) found.append(to_dict(checkpoint));
  return found;
}

// Keeps the temporary copy of a published run from which a result was read: it has the lists of the checkpoints' files.
struct ReadingCopy {
  std::shared_ptr<const std::filesystem::path> path = {};
};

nb::dict to_dict(const train::Result& result) {
  nb::dict found;
  found["metrics"] = to_python(result.metrics.value());
  found["checkpoint"] = path_or_none(result.checkpoint);
  found["best_checkpoints"] = to_list(result.best_checkpoints);
  nb::list history;
  for (std::size_t i = 0; i < result.metrics_history.size(); ++i)
    history.append(
        nb::make_tuple(to_python(result.metrics_history[i].value()), to_python(result.validation_history[i].value())));
  found["history"] = history;
  found["path"] = text(result.path);
  found["config"] = to_python(result.config.value());
  found["return_value"] = to_python(result.return_value);
  found["copy"] = result.copy ? nb::cast(ReadingCopy{result.copy}) : nb::none();
  found["error"] = result.error ? to_python(Value(*result.error)) : nb::none();
  return found;
}

// Passes events on to methods of the same names, of those that `hooks` names.
class PythonCallback final : public train::Callback {
 public:
  PythonCallback(nb::object object, std::set<std::string> hooks)
      : object_(std::move(object)), hooks_(std::move(hooks)) {}
  ~PythonCallback() override {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }

  void on_start(const train::RunContext& run) override {
    call("on_start", [&] { object_.attr("on_start")(to_dict(run)); });
  }
  void after_reports(const train::RunContext& run, const std::vector<Metrics>& metrics,
                     const std::optional<Checkpoint>& checkpoint) override {
    call("after_report", [&] {
      nb::list by_rank;
      for (const Metrics& one : metrics) by_rank.append(to_python(one.value()));
      object_.attr("after_report")(to_dict(run), by_rank, path_or_none(checkpoint));
    });
  }
  void after_exception(const train::RunContext& run, const std::map<std::int64_t, std::string>& failures) override {
    call("after_exception", [&] {
      nb::dict errors;
      for (const auto& [rank, error] : failures) errors[nb::int_(rank)] = to_python(Value(error));
      object_.attr("after_exception")(to_dict(run), errors);
    });
  }
  void on_end(const train::RunContext& run) override {
    call("on_end", [&] { object_.attr("on_end")(to_dict(run)); });
  }
  std::string name() const override { return "cadre.train.Callbacks"; }

 private:
  static nb::dict to_dict(const train::RunContext& run) {
    nb::dict found;
    found["name"] = run.name;
    found["path"] = text(run.path);
    found["train_loop_config"] = to_python(run.train_loop_config.value());
    found["attempt"] = run.attempt;
    found["world_size"] = run.world_size;
    return found;
  }
  template <class Call>
  void call(const std::string& hook, const Call& call) {
    if (hooks_.contains(hook)) with_python(call);
  }

  nb::object object_;
  std::set<std::string> hooks_;
};

std::shared_ptr<PythonCallback> callback_of(nb::object callbacks, std::set<std::string> hooks) {
  return std::make_shared<PythonCallback>(std::move(callbacks), std::move(hooks));
}

// A Trainer whose ranks form a group of torch.distributed by themselves (cadre/train/torch.py).
struct PythonTrainer {
  std::unique_ptr<train::Trainer> trainer;
};

PythonTrainer make_trainer(nb::handle description, const std::string& name, const std::string& storage_path,
                           const std::string& if_exists, nb::handle publish, nb::object callbacks,
                           std::set<std::string> hooks) {
  train::Description all = train::to_description(to_value(description));
  train::RunConfig& run = all.options.run_config;
  run.name = name;
  run.storage_path = storage_path;
  run.if_exists = from_value<IfExists>(Value(if_exists));
  run.publish_config = from_value<PublishConfig>(to_value(publish));
  run.callbacks.push_back(callback_of(std::move(callbacks), std::move(hooks)));
  return {std::make_unique<train::Trainer>(std::move(all.loop), std::move(all.options))};
}

PythonTrainer restore_trainer(const std::string& directory, nb::handle publish, nb::object callbacks,
                              std::set<std::string> hooks) {
  const auto publish_config = from_value<PublishConfig>(to_value(publish));
  const auto callback = callback_of(std::move(callbacks), std::move(hooks));
  std::unique_ptr<train::Trainer> trainer;
  with_cadre([&] {
    trainer = std::make_unique<train::Trainer>(
        train::Trainer::restore(directory, {.callbacks = {callback}, .publish_config = publish_config}));
  });
  return {std::move(trainer)};
}

nb::dict fit(PythonTrainer& python, bool takes_signals) {
  const InterruptibleBySignals interruptible(takes_signals);
  train::Result result;
  with_cadre([&] { result = python.trainer->fit(); });
  return to_dict(result);
}

// Holds an object that any thread may drop.
std::shared_ptr<const nb::object> held(const nb::object& object) {
  return {new nb::object(object), [](const nb::object* dropped) {
            const nb::gil_scoped_acquire gil;
            delete dropped;
          }};
}

void report(nb::handle metrics, const std::optional<std::string>& checkpoint, const nb::object& write,
            const std::string& mode, std::optional<bool> delete_local, const std::string& directory_name,
            const nb::object& upload, nb::handle validation, std::optional<double> validation_timeout,
            nb::handle validation_resources, nb::handle validator, nb::handle validator_config, bool until_published) {
  const Metrics row(to_config(metrics).dict());
  train::ReportOptions options{.checkpoint_upload_mode = from_value<train::CheckpointUploadMode>(Value(mode)),
                               .delete_local_checkpoint_after_upload = delete_local,
                               .checkpoint_dir_name = directory_name,
                               .until_published = until_published};
  if (!upload.is_none()) {
    // In the mode "async" another thread calls it, also after this function has returned.
    options.checkpoint_upload_function = [function = held(upload)](const Checkpoint& given, const std::string& name) {
      return with_python([&] {
        const nb::object stored = (*function)(text(given.path()), to_python(Value(name)));
        return Checkpoint::from_directory(nb::cast<std::string>(stored));
      });
    };
  }
  if (!validation.is_none()) {
    train::ValidationTask task{.config = to_config(validation)};
    if (validation_timeout) task.timeout = train::Seconds(*validation_timeout);
    if (!validation_resources.is_none()) task.resources = from_value<Resources>(to_value(validation_resources));
    options.validation = std::move(task);
  }
  if (!validator.is_none()) {
    options.validate = from_value<train::Validator>(to_value(validator));
    options.validate_config = to_config(validator_config);
  }
  with_cadre([&] {
    if (checkpoint) {
      train::report(row, Checkpoint::from_directory(*checkpoint), options);
    } else if (!write.is_none()) {
      train::report(
          row, [&](const std::filesystem::path& directory) { with_python([&] { write(text(directory)); }); }, options);
    } else {
      train::report(row, options);
    }
  });
}

std::optional<std::string> checkpoint_path() {
  std::optional<std::string> path;
  with_cadre([&] {
    if (const std::optional<Checkpoint> checkpoint = train::get_checkpoint())
      path = checkpoint->as_directory().path().string();
  });
  return path;
}

nb::list reported_checkpoints(const std::string& consistency, std::optional<double> timeout) {
  std::vector<train::ReportedCheckpoint> found;
  const auto state = from_value<train::CheckpointConsistency>(Value(consistency));
  with_cadre([&] {
    found =
        train::get_all_reported_checkpoints(state, timeout ? std::optional(train::Seconds(*timeout)) : std::nullopt);
  });
  return to_list(found);
}

// The key-value store of this worker's group, for torch.distributed.
struct GroupKeys {
  std::shared_ptr<worker::KeyValueStore> store;
};

std::string bytes_of(const nb::bytes& bytes) { return {static_cast<const char*>(bytes.data()), bytes.size()}; }
nb::bytes to_bytes(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

GroupKeys group_keys() {
  train::Session* const session = train::Session::current();
  if (session == nullptr) throw Error("there is no group outside a worker of a training run");
  return {session->store()};
}

void bind_group(nb::module_& module) {
  using std::chrono::milliseconds;
  nb::class_<GroupKeys>(module, "GroupKeys")
      .def("set",
           [](const GroupKeys& keys, const std::string& key, const nb::bytes& value) {
             const std::string text = bytes_of(value);
             with_cadre([&] { keys.store->set(key, text); });
           })
      .def("get",
           [](const GroupKeys& keys, const std::string& key, std::int64_t timeout_ms) {
             std::string value;
             with_cadre([&] { value = keys.store->get(key, milliseconds(timeout_ms)); });
             return to_bytes(value);
           })
      .def("wait",
           [](const GroupKeys& keys, const std::vector<std::string>& names, std::int64_t timeout_ms) {
             with_cadre([&] { keys.store->wait(names, milliseconds(timeout_ms)); });
           })
      .def("contains",
           [](const GroupKeys& keys, const std::vector<std::string>& names) {
             bool found = false;
             with_cadre([&] { found = keys.store->contains(names); });
             return found;
           })
      .def("add",
           [](const GroupKeys& keys, const std::string& key, std::int64_t amount) {
             std::int64_t sum = 0;
             with_cadre([&] { sum = keys.store->add(key, amount); });
             return sum;
           })
      .def("compare_and_set",
           [](const GroupKeys& keys, const std::string& key, const nb::bytes& expected, const nb::bytes& wanted) {
             const std::string before = bytes_of(expected);
             const std::string after = bytes_of(wanted);
             std::string found;
             with_cadre([&] { found = keys.store->compare_and_set(key, before, after); });
             return to_bytes(found);
           })
      .def("erase",
           [](const GroupKeys& keys, const std::string& key) {
             bool existed = false;
             with_cadre([&] { existed = keys.store->erase(key); });
             return existed;
           })
      .def("claim_gpu",
           [](const GroupKeys& keys, bool has_gpu, std::int64_t timeout_ms) {
             std::string obstacle;
             with_cadre([&] {
               const train::TrainContext context = train::get_context();
               const worker::GroupPlace place{.world_rank = static_cast<int>(context.get_world_rank()),
                                              .world_size = static_cast<int>(context.get_world_size()),
                                              .node_rank = static_cast<int>(context.get_node_rank())};
               obstacle = worker::claim_gpu(*keys.store, place, has_gpu ? worker::first_visible_gpu() : "",
                                            milliseconds(timeout_ms));
             });
             return obstacle;
           })
      .def("size", [](const GroupKeys& keys) {
        std::int64_t size = 0;
        with_cadre([&] { size = keys.store->size(); });
        return size;
      });
  module.def("group_keys", &group_keys);
}

void bind_session(nb::module_& module) {
  module.def("report", &report, nb::arg("metrics"), nb::arg("checkpoint").none(), nb::arg("write").none(),
             nb::arg("mode"), nb::arg("delete_local").none(), nb::arg("directory_name"), nb::arg("upload").none(),
             nb::arg("validation").none(), nb::arg("validation_timeout").none(), nb::arg("validation_resources").none(),
             nb::arg("validator").none(), nb::arg("validator_config").none(), nb::arg("until_published"));
  module.def("checkpoint_path", &checkpoint_path);
  module.def("reported_checkpoints", &reported_checkpoints, nb::arg("consistency"), nb::arg("timeout").none());
  module.def("barrier", [] { with_cadre([] { train::barrier(); }); });
  module.def("broadcast_from_rank_zero", [](nb::handle given) {
    Value value = to_value(given);
    with_cadre([&] { value = train::broadcast_from_rank_zero(value); });
    return to_python(value);
  });
  module.def("is_worker", [] { return train::Session::current() != nullptr; });
  module.def("world_rank", [] { return train::get_context().get_world_rank(); });
  module.def("world_size", [] { return train::get_context().get_world_size(); });
  module.def("local_rank", [] { return train::get_context().get_local_rank(); });
  module.def("local_world_size", [] { return train::get_context().get_local_world_size(); });
  module.def("node_rank", [] { return train::get_context().get_node_rank(); });
  module.def("experiment_name", [] { return train::get_context().get_experiment_name(); });
  module.def("storage_path", [] { return train::get_context().get_storage().path().string(); });
  module.def("checkpoint_directory", [](const std::string& name) {
    return train::get_context().get_storage().build_checkpoint_path_from_name(name).string();
  });
}

}  // namespace

void bind_train(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("train");
  nb::class_<ReadingCopy>(module, "ReadingCopy");
  nb::class_<PythonTrainer>(module, "Trainer").def("fit", &fit, nb::arg("takes_signals"));
  module.def("make_trainer", &make_trainer, nb::arg("description"), nb::arg("name"), nb::arg("storage_path"),
             nb::arg("if_exists"), nb::arg("publish"), nb::arg("callbacks").none(), nb::arg("hooks"),
             "Makes a Trainer of options in the form in which they are stored.");
  module.def("restore_trainer", &restore_trainer, nb::arg("directory"), nb::arg("publish"), nb::arg("callbacks").none(),
             nb::arg("hooks"));
  module.def("can_restore", [](const std::string& directory, nb::handle publish) {
    const auto publish_config = from_value<PublishConfig>(to_value(publish));
    return result_of([&] { return train::Trainer::can_restore(directory, publish_config); });
  });
  module.def("is_finished", [](const std::string& directory) {
    return result_of([&] { return train::Result::from_directory(directory).finished; });
  });
  module.def("is_in_trial", [] { return worker::ParentRun::current() != nullptr; });
  module.def("read_result", [](const std::string& directory) {
    return to_dict(result_of([&] { return train::Result::from_directory(directory); }));
  });
  bind_session(module);
  bind_group(module);
}

}  // namespace cadre::python
