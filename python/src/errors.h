// Exceptions on their way between C++ and Python.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <optional>
#include <utility>

#include "cadre/host.h"
#include "values.h"

namespace cadre::python {

// Adds the exceptions to the module, and translates those of C++ into them.
void bind_errors(nanobind::module_& module);

// Throws the exception of C++ that goes with one of Python: StopWorker for StopTrial, otherwise HostError with the
// whole traceback. The GIL must be held.
[[noreturn]] CADRE_EXPORTED void throw_as_cpp(nanobind::python_error& error);

// Calls a function that uses Python, from C++, and converts its exceptions so. Takes the GIL.
template <class Call>
auto with_python(const Call& call) {
  const nanobind::gil_scoped_acquire gil;
  try {
    return call();
  } catch (nanobind::python_error& error) {
    throw_as_cpp(error);
  }
}

// Calls a function of Cadre's, from Python, that may take long or end the trial. Releases the GIL.
CADRE_EXPORTED void with_cadre(const std::function<void()>& call);
// Does the same, and returns what the function returns.
template <class Call>
auto result_of(const Call& call) {
  std::optional<decltype(call())> result;
  with_cadre([&] { result.emplace(call()); });
  return *std::move(result);
}

}  // namespace cadre::python
