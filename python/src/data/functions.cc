#include "functions.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "cadre/data/functions.h"
#include "dataset.h"
#include "errors.h"
#include "exchange.h"
#include "values.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

// Holds an object that any thread may drop.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  ~Held() {
    const nb::gil_scoped_acquire gil;
    object_.reset();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const nb::object& get() const { return object_; }

 private:
  nb::object object_;
};

data::BatchCall make_call(const Value& value, const data::CallContext& context) {
  auto function = with_python([&] {
    return std::make_shared<const Held>(
        nb::module_::import_("cadre.data._functions").attr("make_call")(to_python(value), context.epoch));
  });
  return [function = std::move(function)](const data::Batch& batch) {
    return with_python([&] { return to_batch(function->get()(nb::cast(PythonBatch{batch}))); });
  };
}

unsigned long main_thread = 0;  // of the interpreter

// Raises what a handler of a signal raises, in the main thread: KeyboardInterrupt after Ctrl-C. Other threads need not
// ask, and must not: the interpreter may have ended.
void check_signals() {
  if (PyThread_get_thread_ident() != main_thread) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void serve_functions() {
  data::set_host_functions(&make_call);
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  data::set_interrupt_check(&check_signals);
}

}  // namespace cadre::python
