#include "values.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace nb = nanobind;

namespace cadre::python {
namespace {

// A reference to an object of the object store. In the process that has put the object, it also holds it.
struct PythonRef {
  Reference reference = {};
  std::optional<ObjectRef> held = {};
};

[[noreturn]] void raise(PyObject* type, const std::string& path, const std::string& why) {
  PyErr_SetString(type, (path.empty() ? why : "\"" + path + "\": " + why).c_str());
  throw nb::python_error();
}

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "/" + key; }

// Returns a text in UTF-8. Raises UnicodeEncodeError for one that cannot be that.
std::string text_at(nb::handle object) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
  if (text == nullptr) throw nb::python_error();
  return std::string(text, static_cast<std::size_t>(size));
}

constexpr int kMostLevels = 1000;  // more than the core keeps; a list that contains itself has no end

// Returns the depth of what is in a list or dictionary. Raises ValueError if that is too deep.
int depth_within(int depth, const std::string& path) {
  if (depth == kMostLevels)
    raise(PyExc_ValueError, path.substr(0, path.find('/')),
          "more than " + std::to_string(kMostLevels) +
              " levels of lists and dictionaries cannot be stored; does one contain itself?");
  return depth + 1;
}

Value value_at(nb::handle object, const std::string& path, int depth);

// Raises ValueError for keys that are different objects and one text, such as 1 and "1".
void require_different_texts(const Dict& entries, const std::string& path) {
  std::set<std::string_view> keys;
  for (const auto& entry : entries) {
    if (!keys.insert(entry.first).second)
      raise(PyExc_ValueError, joined(path, entry.first),
            "two keys of the dictionary are this text where they are stored, such as 1 and \"1\": rename one of them");
  }
}

Value dict_at(nb::handle object, const std::string& path, int depth) {
  Dict entries;
  entries.reserve(static_cast<std::size_t>(PyDict_Size(object.ptr())));
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  bool are_texts = true;  // and so different ones
  for (Py_ssize_t next = 0; PyDict_Next(object.ptr(), &next, &key, &item) != 0;) {
    // Another thread may change the dictionary, as while a number is fetched from a GPU: keeps what is read meanwhile.
    const nb::object kept_key = nb::borrow(key);
    const nb::object kept_item = nb::borrow(item);
    are_texts = are_texts && PyUnicode_CheckExact(key);
    const nb::str text{nb::handle(key)};  // str(key), as JSON has it
    const std::string name = text_at(text);
    entries.emplace_back(name, value_at(item, joined(path, name), depth));
  }
  if (entries.size() != static_cast<std::size_t>(PyDict_Size(object.ptr())))
    raise(PyExc_RuntimeError, path, "the dictionary was changed while it was read: give a copy of it");
  if (!are_texts) require_different_texts(entries, path);
  return entries;
}

Value list_at(nb::handle object, const std::string& path, int depth) {
  List items;
  for (const nb::handle item : nb::borrow<nb::object>(object))
    items.push_back(value_at(item, joined(path, std::to_string(items.size())), depth));
  return items;
}

// Returns false for an array or tensor of several numbers, or of none, whose item() raises an error.
bool has_one_item(nb::handle array) {
  if (!nb::hasattr(array, "shape")) return true;
  const nb::object shape = array.attr("shape");
  for (const nb::handle length : shape) {
    if (!length.equal(nb::int_(1))) return false;
  }
  return true;
}

Value value_at(nb::handle object, const std::string& path, int depth) {
  PyObject* const pointer = object.ptr();
  if (pointer == Py_None) return {};
  if (PyBool_Check(pointer)) return pointer == Py_True;
  if (PyLong_Check(pointer)) {
    int overflow = 0;
    const std::int64_t number = PyLong_AsLongLongAndOverflow(pointer, &overflow);
    if (overflow != 0) raise(PyExc_OverflowError, path, "an integer beyond 64 bits cannot be stored");
    return number;
  }
  if (PyFloat_Check(pointer)) return PyFloat_AsDouble(pointer);
  if (PyUnicode_Check(pointer)) return text_at(object);
  if (PyDict_Check(pointer)) return dict_at(object, path, depth_within(depth, path));
  if (PyList_Check(pointer) || PyTuple_Check(pointer)) return list_at(object, path, depth_within(depth, path));
  if (nb::isinstance<PythonRef>(object)) return nb::cast<PythonRef&>(object).reference;
  const bool is_array = nb::hasattr(object, "item") && nb::hasattr(object, "dtype");
  if (is_array && has_one_item(object)) {
    const nb::object number = object.attr("item")();
    if (!nb::hasattr(number, "dtype")) return value_at(number, path, depth);
  }
  const nb::str type{nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(pointer)))};
  raise(PyExc_TypeError, path,
        std::string("an object of ") + type.c_str() +
            " cannot be stored; None, bool, int, float, str, lists and dictionaries of these can" +
            (is_array ? ", such as the list that its tolist() returns" : ""));
}

}  // namespace

Value to_value(nb::handle object) { return value_at(object, "", 0); }

Config to_config(nb::handle object) {
  if (!PyDict_Check(object.ptr())) {
    const nb::str text = nb::repr(object);
    raise(PyExc_TypeError, "", std::string("a dictionary is needed, not ") + text.c_str());
  }
  return Config(to_value(object).dict());
}

nb::object to_python(const Value& value) {
  return std::visit(
      []<class T>(const T& one) -> nb::object {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, bool>) {
          return nb::bool_(one);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return nb::int_(one);
        } else if constexpr (std::is_same_v<T, double>) {
          return nb::float_(one);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return nb::steal<nb::object>(
              PyUnicode_DecodeUTF8(one.data(), static_cast<Py_ssize_t>(one.size()), "surrogateescape"));
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const List>>) {
          nb::list items;
          for (const Value& item : *one) items.append(to_python(item));
          return items;
        } else if constexpr (std::is_same_v<T, std::shared_ptr<const Dict>>) {
          nb::dict entries;
          for (const auto& [key, item] : *one) entries[to_python(Value(key))] = to_python(item);
          return entries;
        } else {
          return nb::cast(PythonRef{one});
        }
      },
      value.data());
}

void bind_values(nb::module_& module) {
  nb::class_<PythonRef>(module, "ObjectRef", "A reference to an object of the object store: cadre.put.")
      .def_prop_ro("id", [](const PythonRef& ref) { return ref.reference.id; })
      .def("hex", [](const PythonRef& ref) { return ref.reference.id; })
      .def("__repr__", [](const PythonRef& ref) { return "ObjectRef(" + ref.reference.id + ")"; })
      .def("__hash__", [](const PythonRef& ref) { return std::hash<std::string>()(ref.reference.id); })
      .def("__eq__",
           [](const PythonRef& ref, nb::handle other) {
             return nb::isinstance<PythonRef>(other) && nb::cast<PythonRef&>(other).reference.id == ref.reference.id;
           })
      .def("__getstate__", [](const PythonRef& ref) { return nb::make_tuple(ref.reference.kind, ref.reference.id); })
      .def("__setstate__", [](PythonRef& ref, const nb::tuple& state) {
        new (&ref) PythonRef{{nb::cast<std::string>(state[0]), nb::cast<std::string>(state[1])}, {}};
      });
  module.def(
      "put_bytes",
      [](const nb::bytes& bytes) {
        ObjectRef ref = put(std::string_view(static_cast<const char*>(bytes.data()), bytes.size()));
        return PythonRef{to_reference(ref), ref};
      },
      "Puts bytes into the object store, and holds them until the last copy of the reference is gone.");
  module.def(
      "get_bytes",
      [](const PythonRef& ref) {
        const Object object = ref.held ? get(*ref.held) : get(ref.reference);
        return nb::bytes(object.bytes().data(), object.bytes().size());
      },
      "Returns a copy of an object's bytes.");
}

}  // namespace cadre::python
