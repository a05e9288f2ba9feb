#include "errors.h"

#include <cstring>
#include <string>

#include "cadre/error.h"
#include "cadre/train.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

// Classes of the module, which is never unloaded.
PyObject* stop_trial = nullptr;
PyObject* cadre_error = nullptr;
PyObject* invalid_argument = nullptr;
PyObject* not_found = nullptr;
PyObject* interrupted = nullptr;
PyObject* training_failed = nullptr;

PyObject* add_class(nb::module_& module, const char* name, const char* doc, const nb::object& bases) {
  const std::string full_name = std::string("cadre.") + name;
  PyObject* const made = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw nb::python_error();
  module.attr(name) = nb::handle(made);
  return made;
}

// Sets an exception of Python. Bytes that are no UTF-8, as of a file's name in another encoding, become escapes.
void set_exception(PyObject* type, const std::exception& error) {
  const char* const what = error.what();
  const nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "backslashreplace"));
  if (text.is_valid()) PyErr_SetObject(type, text.ptr());  // otherwise memory is out, and that is the exception
}

// Returns a text in UTF-8. Characters that cannot be that become escapes: Python has the bytes of a file's name in
// another encoding as such.
std::string escaped_utf8(const nb::object& text) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const StopWorker&) {
    PyErr_SetNone(stop_trial);
  } catch (const Interrupted& error) {
    set_exception(interrupted, error);
  } catch (const InvalidArgument& error) {
    set_exception(invalid_argument, error);
  } catch (const NotFound& error) {
    set_exception(not_found, error);
  } catch (const train::TrainingFailed& error) {
    set_exception(training_failed, error);
  } catch (const Error& error) {
    set_exception(cadre_error, error);
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  stop_trial = add_class(module, "StopTrial",
                         "Unwinds a training function whose trial is to stop. No Exception, so that `except Exception` "
                         "around report() does not swallow it.",
                         nb::borrow(PyExc_BaseException));
  cadre_error = add_class(module, "CadreError", "Something failed: the storage, the fork server, a worker.",
                          nb::borrow(PyExc_RuntimeError));
  const nb::handle base(cadre_error);
  invalid_argument = add_class(module, "InvalidArgument", "Options or values that cannot be; nothing was changed.",
                               nb::make_tuple(nb::handle(PyExc_ValueError), base));
  not_found = add_class(module, "NotFound", "There is no such experiment, trial, object or key.",
                        nb::make_tuple(nb::handle(PyExc_FileNotFoundError), base));
  interrupted = add_class(module, "Interrupted", "An experiment was interrupted; a restore goes on with it.",
                          nb::make_tuple(base));
  training_failed = add_class(module, "TrainingFailedError",
                              "A run has failed more often than its FailureConfig allows. Its directory has everything "
                              "that was reported.",
                              nb::make_tuple(base));
  nb::register_exception_translator(translate);
}

void throw_as_cpp(nb::python_error& error) {
  if (error.matches(nb::handle(stop_trial))) throw StopWorker{};
  const nb::object lines =
      nb::module_::import_("traceback").attr("format_exception")(error.type(), error.value(), error.traceback());
  throw HostError(escaped_utf8(nb::str("").attr("join")(lines)));
}

void with_cadre(const std::function<void()>& call) {
  const nb::gil_scoped_release no_gil;
  call();
}

}  // namespace cadre::python
