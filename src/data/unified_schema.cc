#include "data/unified_schema.h"

#include <arrow/array.h>
#include <arrow/array/util.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

using ArrayDataPtr = std::shared_ptr<arrow::ArrayData>;
using TypePtr = std::shared_ptr<arrow::DataType>;

// Replaces a dictionary type by the type of its values if the other field is neither a dictionary nor null.
std::shared_ptr<arrow::Field> plain_beside(const std::shared_ptr<arrow::Field>& field, const arrow::Field& other) {
  const arrow::Type::type other_type = other.type()->id();
  if (field->type()->id() != arrow::Type::DICTIONARY || other_type == arrow::Type::DICTIONARY ||
      other_type == arrow::Type::NA)
    return field;
  return field->WithType(static_cast<const arrow::DictionaryType&>(*field->type()).value_type());
}

bool is_large(const arrow::DataType& type) { return type.id() == arrow::Type::LARGE_LIST; }

// Returns a list type of the same kind as `wanted`, with the items of `type`.
TypePtr list_like(const arrow::DataType& wanted, const arrow::DataType& type) {
  const auto& item = static_cast<const arrow::BaseListType&>(type).value_field();
  return is_large(wanted) ? arrow::large_list(item) : arrow::list(item);
}

class Conversion {
 public:
  Conversion(arrow::MemoryPool* pool, const std::string& doing) : doing_(doing), context_(pool) {
    context_.set_use_threads(false);
  }

  ArrayDataPtr convert(const ArrayDataPtr& values, const TypePtr& type) {
    using enum arrow::Type::type;
    const arrow::Type::type from = values->type->id();
    if (values->type->Equals(type)) return values;
    if (from == NA) return nulls(type, values->length);
    if (from == DICTIONARY && type->id() == DICTIONARY) return recode(values, type);
    if (from == DICTIONARY)
      return convert(cast(values, static_cast<const arrow::DictionaryType&>(*values->type).value_type()), type);
    if (from == STRUCT && type->id() == STRUCT) return convert_struct(values, type);
    if (!arrow::is_list_like(from) || !arrow::is_list_like(type->id())) return cast(values, type);
    const bool is_same_list = from == type->id();
    const auto lists = is_same_list ? values : cast(values, list_like(*type, *values->type));
    return with_children(lists, type, {convert(lists->child_data.front(), type->field(0)->type())});
  }

 private:
  ArrayDataPtr cast(const ArrayDataPtr& values, const TypePtr& type) {
    return checked(arrow::compute::Cast(arrow::Datum(values), arrow::compute::CastOptions::Safe(type), &context_),
                   doing_)
        .array();
  }
  ArrayDataPtr nulls(const TypePtr& type, std::int64_t length) {
    return checked(arrow::MakeArrayOfNull(type, length, context_.memory_pool()), doing_)->data();
  }
  // Returns the same rows and nulls with other child values.
  static ArrayDataPtr with_children(const ArrayDataPtr& values, const TypePtr& type,
                                    std::vector<ArrayDataPtr> children) {
    auto converted = values->Copy();
    converted->type = type;
    converted->child_data = std::move(children);
    return converted;
  }
  ArrayDataPtr convert_struct(const ArrayDataPtr& values, const TypePtr& type) {
    const auto& own = static_cast<const arrow::StructType&>(*values->type);
    std::vector<ArrayDataPtr> children;
    for (const auto& field : type->fields()) {
      const int index = own.GetFieldIndex(field->name());
      children.push_back(index < 0 ? nulls(field->type(), values->offset + values->length)
                                   : convert(values->child_data[static_cast<std::size_t>(index)], field->type()));
    }
    return with_children(values, type, std::move(children));
  }
  ArrayDataPtr recode(const ArrayDataPtr& values, const TypePtr& type) {
    const auto& wanted = static_cast<const arrow::DictionaryType&>(*type);
    const arrow::DictionaryArray own(values);
    const auto codes = convert(own.indices()->data(), wanted.index_type());
    const auto dictionary = convert(own.dictionary()->data(), wanted.value_type());
    return checked(arrow::DictionaryArray::FromArrays(type, arrow::MakeArray(codes), arrow::MakeArray(dictionary)),
                   doing_)
        ->data();
  }

  const std::string& doing_;
  arrow::compute::ExecContext context_;
};

}  // namespace

void UnifiedSchema::add(const std::shared_ptr<arrow::Schema>& schema, const std::string& file) {
  if (last_ != nullptr && schema->Equals(*last_, false)) return;  // the usual case
  for (Column& column : columns_) {
    const int index = schema->GetFieldIndex(column.field->name());
    if (index < 0) {
      column.is_everywhere = false;
    } else {
      merge(column, schema->field(index), file);
    }
  }
  for (const auto& field : schema->fields()) {
    if (!places_.contains(field->name())) append(field, file, last_ == nullptr);
  }
  last_ = schema;
}

void UnifiedSchema::add_folders(const arrow::FieldVector& fields) {
  for (const auto& field : fields) {
    const auto place = places_.find(field->name());
    if (place == places_.end()) {
      append(field, "the names of folders", false);
    } else if (Column& column = columns_[place->second]; !column.is_everywhere) {
      merge(column, field, "the names of folders");
    }
  }
}

void UnifiedSchema::append(const std::shared_ptr<arrow::Field>& field, const std::string& file, bool is_everywhere) {
  places_.emplace(field->name(), columns_.size());
  columns_.push_back({field, field->type(), file, is_everywhere});
}

void UnifiedSchema::merge(Column& column, const std::shared_ptr<arrow::Field>& field, const std::string& file) const {
  if (column.field->Equals(*field, false)) return;
  const auto merged = plain_beside(column.field, *field)
                          ->MergeWith(*plain_beside(field, *column.field), arrow::Field::MergeOptions::Permissive());
  if (!merged.ok())
    throw StorageError(fmt::format(
        "the column \"{}\" has types in {} that do not go together: {} in {}, and {} in {}. {}", field->name(), whole_,
        column.own_type->ToString(), column.file, field->type()->ToString(), file, advice_));
  if (!(*merged)->type()->Equals(column.field->type())) {
    column.own_type = field->type();
    column.file = file;
  }
  column.field = *merged;
}

std::shared_ptr<arrow::Schema> UnifiedSchema::schema() const {
  arrow::FieldVector fields;
  for (const Column& column : columns_)
    fields.push_back(column.is_everywhere ? column.field : column.field->WithNullable(true));
  return arrow::schema(std::move(fields));
}

std::shared_ptr<arrow::Array> convert(const std::shared_ptr<arrow::Array>& values, const TypePtr& type,
                                      arrow::MemoryPool* pool, const std::string& doing) {
  if (values->type()->Equals(type)) return values;
  initialise_compute();
  return arrow::MakeArray(Conversion(pool, doing).convert(values->data(), type));
}

std::shared_ptr<arrow::RecordBatch> convert_block(const std::shared_ptr<arrow::RecordBatch>& block,
                                                  const std::shared_ptr<arrow::Schema>& schema, arrow::MemoryPool* pool,
                                                  const std::string& doing) {
  arrow::ArrayVector columns;
  for (const auto& field : schema->fields()) {
    const auto own = block->GetColumnByName(field->name());
    columns.push_back(own == nullptr ? checked(arrow::MakeArrayOfNull(field->type(), block->num_rows(), pool), doing)
                                     : convert(own, field->type(), pool, doing));
  }
  return arrow::RecordBatch::Make(schema, block->num_rows(), std::move(columns));
}

bool have_same_order(const arrow::DataType& a, const arrow::DataType& b) {
  if (a.Equals(b)) return true;
  const auto both = [&](bool (*is)(arrow::Type::type)) { return is(a.id()) && is(b.id()); };
  return both(arrow::is_signed_integer) || both(arrow::is_unsigned_integer) || both(arrow::is_string);
}

}  // namespace cadre::data
