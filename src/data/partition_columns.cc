#include "data/partition_columns.h"

#include <arrow/array/util.h>
#include <arrow/compute/cast.h>
#include <arrow/dataset/partition.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>
#include <utility>

#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;
namespace ds = arrow::dataset;

constexpr const char* kDoing = "cannot take columns from the names of folders";

// "year" and "2024"; without a value if it is null.
using Key = ds::KeyValuePartitioning::Key;

std::vector<Key> keys_of(std::string_view path) {
  std::vector<Key> keys;
  const std::size_t end = path.rfind('/');
  const std::string_view folders = end == path.npos ? "" : path.substr(0, end);
  for (const auto part : folders | std::views::split('/')) {
    auto key = checked(ds::HivePartitioning::ParseKey(std::string(part.begin(), part.end()), {}), kDoing);
    if (key && std::ranges::find(keys, key->name, &Key::name) == keys.end()) keys.push_back(*std::move(key));
  }
  return keys;
}

// Returns the names of the folders between the requested path and the file.
Names folders_of(const InputFile& file) {
  Names folders;
  if (file.asked.size() == file.path.size()) return folders;  // the file itself was requested
  for (const auto part : file.asked | std::views::split('/')) {
    if (!part.empty()) folders.emplace_back(part.begin(), part.end());
  }
  folders.pop_back();  // the file
  return folders;
}

bool is_int32(const std::string& text) { return arrow::Scalar::Parse(arrow::int32(), text).ok(); }

arrow::FieldVector fields_of(const std::vector<std::vector<Key>>& files) {
  Names names;                             // in the order of their first appearance
  std::map<std::string, bool> is_integer;  // for names with a value
  for (const Key& key : files | std::views::join) {
    if (std::ranges::find(names, key.name) == names.end()) names.push_back(key.name);
    if (!key.value) continue;
    const auto known = is_integer.try_emplace(key.name, true).first;
    known->second = known->second && is_int32(*key.value);
  }
  arrow::FieldVector fields;
  for (const std::string& name : names) {
    const auto found = is_integer.find(name);
    fields.push_back(arrow::field(name, found != is_integer.end() && found->second ? arrow::int32() : arrow::utf8()));
  }
  return fields;
}

std::shared_ptr<arrow::Scalar> value_of(const arrow::Field& field, const std::vector<Key>& keys) {
  const auto key = std::ranges::find(keys, field.name(), &Key::name);
  if (key == keys.end() || !key->value) return arrow::MakeNullScalar(field.type());
  return checked(arrow::Scalar::Parse(field.type(), *key->value), kDoing);
}

std::shared_ptr<arrow::Scalar> as_type(const std::shared_ptr<arrow::Scalar>& value,
                                       const std::shared_ptr<arrow::DataType>& type) {
  if (value->type->Equals(type)) return value;
  initialise_compute();
  return checked(cp::Cast(arrow::Datum(value), cp::CastOptions::Safe(type)), kDoing).scalar();
}

}  // namespace

cp::Expression PartitionColumns::guarantee() const {
  std::vector<cp::Expression> all;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const cp::Expression field = cp::field_ref(arrow::FieldRef(fields_[i]->name()));
    all.push_back(values_[i]->is_valid ? cp::equal(field, cp::literal(values_[i])) : cp::is_null(field));
  }
  return cp::and_(all);
}

PartitionColumns PartitionColumns::without(const arrow::Schema& of_file) const {
  PartitionColumns some;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (of_file.GetFieldIndex(fields_[i]->name()) >= 0) continue;
    some.fields_.push_back(fields_[i]);
    some.values_.push_back(values_[i]);
  }
  return some;
}

PartitionColumns PartitionColumns::completed(const arrow::Schema& dataset, const arrow::Schema& of_file) const {
  PartitionColumns all;
  for (const auto& field : dataset.fields()) {
    if (of_file.GetFieldIndex(field->name()) >= 0) continue;
    const auto own = std::ranges::find(fields_, field->name(), [](const auto& one) { return one->name(); });
    all.fields_.push_back(field);
    all.values_.push_back(own == fields_.end()
                              ? arrow::MakeNullScalar(field->type())
                              : as_type(values_[static_cast<std::size_t>(own - fields_.begin())], field->type()));
  }
  return all;
}

std::shared_ptr<arrow::Schema> PartitionColumns::add_to(const arrow::Schema& schema) const {
  arrow::FieldVector fields = schema.fields();
  fields.insert(fields.end(), fields_.begin(), fields_.end());
  return arrow::schema(std::move(fields));
}

std::shared_ptr<arrow::Array> PartitionColumns::column(const std::string& name, std::int64_t rows,
                                                       arrow::MemoryPool* pool) const {
  const auto field = std::ranges::find(fields_, name, [](const auto& one) { return one->name(); });
  return checked(arrow::MakeArrayFromScalar(*values_[static_cast<std::size_t>(field - fields_.begin())], rows, pool),
                 kDoing);
}

std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files) {
  std::vector<std::vector<Key>> keys;
  for (const InputFile& file : files) keys.push_back(keys_of(file.asked));
  const arrow::FieldVector fields = fields_of(keys);
  std::vector<PartitionColumns> columns;
  for (const auto& of_file : keys) {
    arrow::ScalarVector values;
    for (const auto& field : fields) values.push_back(value_of(*field, of_file));
    columns.emplace_back(fields, std::move(values));
  }
  return columns;
}

std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files, const Names& names) {
  arrow::FieldVector fields;
  for (const std::string& name : names) fields.push_back(arrow::field(name, arrow::utf8()));
  std::vector<PartitionColumns> columns;
  for (const InputFile& file : files) {
    arrow::ScalarVector values;
    for (std::string& folder : folders_of(file)) values.push_back(std::make_shared<arrow::StringScalar>(folder));
    if (values.size() != names.size())
      throw InvalidArgument(
          fmt::format("{} is in {} folders below the path that is read, and the partitioning names {}: "
                      "{}. Name one column for each folder, and read a folder or a pattern",
                      file.shown, values.size(), names.size(), fmt::join(names, ", ")));
    columns.emplace_back(fields, std::move(values));
  }
  return columns;
}

}  // namespace cadre::data
