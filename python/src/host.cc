#include "host.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/host.h"
#include "cadre/init.h"
#include "cadre/tune/class_trainable.h"
#include "errors.h"
#include "scheduler.h"
#include "searcher.h"
#include "storage/arrow_module.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

bool is_running = false;

nb::object worker_module() { return nb::module_::import_("cadre._worker"); }

nb::object text_of(const std::filesystem::path& path) { return to_python(Value(path.string())); }

// An object of a class that derives from cadre.tune.Trainable.
class PythonTrainable final : public tune::ClassTrainable {
 public:
  explicit PythonTrainable(const HostFunction& function)
      : object_(with_python([&] { return worker_module().attr("make_class")(to_python(function.value)); })) {}
  ~PythonTrainable() override {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }

  void setup(const Config& config) override {
    with_python([&] { object_.attr("_setup")(to_python(config.value()), to_python(get_parameters().value())); });
  }
  Metrics step() override {
    return with_python([&] { return Metrics(to_config(object_.attr("_step")(training_iteration())).dict()); });
  }
  void save_checkpoint(const std::filesystem::path& directory) override {
    with_python([&] { object_.attr("_save")(text_of(directory)); });
  }
  void load_checkpoint(const std::filesystem::path& directory) override {
    with_python([&] { object_.attr("_load")(text_of(directory), training_iteration()); });
  }
  bool reset_config(const Config& config) override {
    return with_python([&] { return nb::cast<bool>(object_.attr("_reset")(to_python(config.value()))); });
  }
  void cleanup() override {
    with_python([&] { object_.attr("cleanup")(); });
  }

 private:
  nb::object object_;
};

class PythonHost final : public Host {
 public:
  void set_commands(std::vector<std::string> server, std::vector<std::string> agent) {
    command_ = std::move(server);
    agent_command_ = std::move(agent);
  }
  void set_server_input(int fd) { server_input_ = fd; }
  void set_shows_progress(bool shows) { shows_progress_ = shows; }

  std::vector<std::string> server_command() override { return command_; }
  std::vector<std::string> agent_command() override { return agent_command_; }
  // Between its forks the server runs Python only below, so what this locks stays locked there. Without it CPython 3.13
  // aborts each worker at the next call.
  void before_first_fork() override {
    with_python([] { worker_module().attr("take_environment")(); });
    PyOS_BeforeFork();
  }
  int server_input() override { return server_input_; }
  void on_server_input() override {
    PyOS_AfterFork_Parent();
    struct BeforeNextFork {  // also after an exception
      ~BeforeNextFork() { PyOS_BeforeFork(); }
    } const at_the_end;
    with_python([] { nb::module_::import_("cadre._learning").attr("learn")(); });
  }
  void after_fork() override {
    PyOS_AfterFork_Child();
    is_running = true;  // a worker that may start workers of its own does so through the same server
    with_python([] { worker_module().attr("begin")(); });
    // From here on the main thread has the interpreter only while it runs Python: it would wait forever for an upload
    // in another thread that calls a function, and threads of the program would stand still between the steps of a
    // class.
    static_cast<void>(PyEval_SaveThread());
  }
  void before_end() override {
    with_python([] { worker_module().attr("end")(); });
  }
  Value call(const HostFunction& function, List arguments) override {
    return with_python([&] {
      const nb::object called = nb::module_::import_("cadre._functions").attr("call");
      return to_value(called(to_python(function.value), to_python(Value(std::move(arguments)))));
    });
  }
  std::unique_ptr<tune::Searcher> make_searcher(const HostFunction& function, const tune::SearcherSetting&) override {
    return python::make_searcher(function);
  }
  std::unique_ptr<tune::Scheduler> make_scheduler(const HostFunction& function,
                                                  const tune::SchedulerSetting&) override {
    return python::make_scheduler(function);
  }
  bool print(std::string_view lines, bool is_error) override {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<bool>(
          nb::module_::import_("cadre._driver").attr("print_lines")(nb::bytes(lines.data(), lines.size()), is_error));
    } catch (nb::python_error&) {
      return true;  // nothing depends on the output
    }
  }
  bool shows_progress() override { return shows_progress_; }
  Value run(const HostFunction& function, List arguments) override {
    return with_python([&] {
      return to_value(worker_module().attr("run")(to_python(function.value), to_python(Value(std::move(arguments)))));
    });
  }
  void load_missing() override {
    with_python([] { nb::module_::import_("cadre.data"); });
  }
  tune::TrainableMethods methods(const HostFunction& function) override {
    const Value* const methods = function.value.is_dict() ? find_entry(function.value.dict(), "methods") : nullptr;
    if (methods == nullptr) return {};
    const Config names(methods->dict());
    return {.is_class = true,
            .save_checkpoint = names.get<bool>("save_checkpoint"),
            .load_checkpoint = names.get<bool>("load_checkpoint"),
            .reset_config = names.get<bool>("reset_config")};
  }
  std::unique_ptr<tune::ClassTrainable> make_class(const HostFunction& function) override {
    return std::make_unique<PythonTrainable>(function);
  }

 private:
  std::vector<std::string> command_ = {};
  std::vector<std::string> agent_command_ = {};
  int server_input_ = -1;
  bool shows_progress_ = false;
};

// Workers use it until they end, so it is never destroyed.
PythonHost& host() {
  static auto* const instance = new PythonHost;
  return *instance;
}

void start(std::vector<std::string> command, std::optional<double> num_cpus, std::optional<double> num_gpus,
           std::map<std::string, double> resources, std::map<std::string, std::string> labels,
           std::optional<std::string> accelerator_type, std::vector<std::string> agent_command) {
  host().set_commands(std::move(command), std::move(agent_command));
  // Nothing here runs Python, but for the server, which has the GIL from here on.
  init(0, nullptr,
       {.num_cpus = num_cpus,
        .num_gpus = num_gpus,
        .resources = std::move(resources),
        .accelerator_type = std::move(accelerator_type),
        .labels = std::move(labels),
        .host = &host()});
  is_running = true;
}

// Loads the Arrow of the installed pyarrow for an object storage. Throws InvalidArgument that says what is missing.
void load_arrow(const std::string& uri) {
  const auto fault = with_python([&] {
    return nb::cast<std::string>(nb::module_::import_("cadre._arrow").attr("fault_of_storage")(to_python(Value(uri))));
  });
  if (!fault.empty()) throw InvalidArgument(fault);
}

}  // namespace

void bind_host(nb::module_& module) {
  storage::set_arrow_loader(&load_arrow);
  module.def("init", &start, nb::arg("command"), nb::arg("num_cpus") = nb::none(), nb::arg("num_gpus") = nb::none(),
             nb::arg("resources") = nb::dict(), nb::arg("labels") = nb::dict(),
             nb::arg("accelerator_type") = nb::none(), nb::arg("agent_command") = std::vector<std::string>(),
             "Executes `command` as the fork server; in the process that it becomes, the same call does not return. "
             "`agent_command` does the same on the nodes of a cluster, if there is one.");
  module.def("shutdown", [] {
    with_cadre([] { shutdown(); });
    is_running = false;
  });
  module.def("is_initialized", [] { return is_running; });
  module.def("set_shows_progress", [](bool shows) { host().set_shows_progress(shows); });
  module.def("set_server_input", [](int fd) { host().set_server_input(fd); });
}

}  // namespace cadre::python
