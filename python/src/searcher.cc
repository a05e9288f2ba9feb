#include "searcher.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "cadre/stored.h"
#include "errors.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

// Calls an object of cadre.tune._told.ToldSearcher, which knows how users' searchers are called.
class PythonSearcher final : public tune::Searcher {
 public:
  explicit PythonSearcher(const HostFunction& function)
      : object_(with_python([&] {
          return nb::module_::import_("cadre.tune._told").attr("make_searcher")(to_python(function.value));
        })) {}
  ~PythonSearcher() override {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }

  std::optional<Config> suggest(tune::TrialIndex trial) const override {
    return with_python([&]() -> std::optional<Config> {
      const nb::object answer = object_.attr("suggest")(trial);
      is_finished_ = answer.is(Py_False);
      if (is_finished_ || answer.is_none()) return std::nullopt;
      return to_config(answer);
    });
  }
  bool is_finished() const override { return is_finished_; }
  void on_trial_add(tune::TrialIndex trial, const Config& config) override {
    with_python([&] { object_.attr("on_trial_add")(trial, to_python(config.value())); });
  }
  void on_result(tune::TrialIndex trial, const Metrics& result) override {
    with_python([&] { object_.attr("on_result")(trial, to_python(result.value())); });
  }
  void on_trial_end(tune::TrialIndex trial, tune::TrialStatus status, const Metrics& last_result) override {
    with_python([&] {
      object_.attr("on_trial_end")(trial, status == tune::TrialStatus::error, to_python(last_result.value()));
    });
  }
  Value save() const override {
    return with_python([&] { return to_value(object_.attr("save")()); });
  }
  void load(const Value& state) override {
    with_python([&] { object_.attr("load")(to_python(state)); });
  }

 private:
  nb::object object_;
  mutable bool is_finished_ = false;
};

}  // namespace

std::unique_ptr<tune::Searcher> make_searcher(const HostFunction& function) {
  return std::make_unique<PythonSearcher>(function);
}

}  // namespace cadre::python
