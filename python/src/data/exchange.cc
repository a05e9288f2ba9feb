#include "exchange.h"

#include <arrow/c/abi.h>
#include <arrow/c/bridge.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>

#include <utility>

#include "data/arrow_status.h"

namespace nb = nanobind;

namespace cadre::python {
namespace {

// The names that the interface prescribes.
template <class T>
constexpr const char* kName = nullptr;
template <>
constexpr const char* kName<ArrowSchema> = "arrow_schema";
template <>
constexpr const char* kName<ArrowArray> = "arrow_array";
template <>
constexpr const char* kName<ArrowArrayStream> = "arrow_array_stream";

// Frees what nobody has taken over.
template <class T>
void destroy(PyObject* capsule) {
  auto* const content = static_cast<T*>(PyCapsule_GetPointer(capsule, kName<T>));
  if (content->release != nullptr) content->release(content);
  delete content;
}

template <class T>
nb::object make_capsule(std::unique_ptr<T> content) {
  PyObject* const capsule = PyCapsule_New(content.get(), kName<T>, &destroy<T>);
  if (capsule == nullptr) throw nb::python_error();
  content.release();
  return nb::steal(capsule);
}

template <class T>
T* content_of(nb::handle capsule) {
  void* const content = PyCapsule_GetPointer(capsule.ptr(), kName<T>);
  if (content == nullptr) throw nb::python_error();
  return static_cast<T*>(content);
}

constexpr const char* kGiving = "cannot give rows to Python";
constexpr const char* kTaking = "cannot take rows of Python";

}  // namespace

nb::tuple array_capsules(const data::Batch& batch) {
  auto array = std::make_unique<ArrowArray>();
  auto schema = std::make_unique<ArrowSchema>();
  data::check(arrow::ExportRecordBatch(*batch.arrow(), array.get(), schema.get()), kGiving);
  nb::object given_schema = make_capsule(std::move(schema));
  return nb::make_tuple(given_schema, make_capsule(std::move(array)));
}

nb::object schema_capsule(const arrow::Schema& schema) {
  auto given = std::make_unique<ArrowSchema>();
  data::check(arrow::ExportSchema(schema, given.get()), kGiving);
  return make_capsule(std::move(given));
}

data::Batch to_batch(nb::handle object) {
  const nb::tuple capsules(object.attr("__arrow_c_array__")());
  return data::Batch(data::checked(
      arrow::ImportRecordBatch(content_of<ArrowArray>(capsules[1]), content_of<ArrowSchema>(capsules[0])), kTaking));
}

std::shared_ptr<arrow::Table> to_table(nb::handle object) {
  const nb::object capsule = object.attr("__arrow_c_stream__")();
  const auto reader = data::checked(arrow::ImportRecordBatchReader(content_of<ArrowArrayStream>(capsule)), kTaking);
  return data::checked(reader->ToTable(), kTaking);
}

}  // namespace cadre::python
