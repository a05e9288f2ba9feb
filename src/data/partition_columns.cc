#include "data/partition_columns.h"

#include <arrow/array/util.h>
#include <arrow/dataset/partition.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>

#include <algorithm>
#include <utility>

#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

namespace cp = arrow::compute;
namespace ds = arrow::dataset;

constexpr const char* kDoing = "cannot take columns from the names of folders";

arrow::ScalarVector values_of(const cp::Expression& partition, const arrow::Schema& schema) {
  arrow::ScalarVector values;
  for (const auto& field : schema.fields()) {
    const auto column = checked(cp::field_ref(arrow::FieldRef(field->name())).Bind(schema), kDoing);
    const auto known = checked(cp::SimplifyWithGuarantee(column, partition), kDoing);
    const arrow::Datum* value = known.literal();  // null: the folders do not say
    const bool is_known = value != nullptr && value->scalar()->is_valid;
    values.push_back(is_known ? value->scalar() : arrow::MakeNullScalar(field->type()));
  }
  return values;
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
  Names names;
  for (const auto& field : fields_) {
    if (of_file.GetFieldIndex(field->name()) < 0) names.push_back(field->name());
  }
  return selected(names);
}

PartitionColumns PartitionColumns::selected(const Names& names) const {
  PartitionColumns some;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (std::ranges::find(names, fields_[i]->name()) == names.end()) continue;
    some.fields_.push_back(fields_[i]);
    some.values_.push_back(values_[i]);
  }
  return some;
}

std::shared_ptr<arrow::Schema> PartitionColumns::add_to(const arrow::Schema& schema) const {
  arrow::FieldVector fields = schema.fields();
  fields.insert(fields.end(), fields_.begin(), fields_.end());
  return arrow::schema(std::move(fields));
}

Block PartitionColumns::add_to(const Block& block, arrow::MemoryPool* pool) const {
  if (fields_.empty()) return block;
  arrow::ArrayVector arrays = block->columns();
  for (const auto& value : values_)
    arrays.push_back(checked(arrow::MakeArrayFromScalar(*value, block->num_rows(), pool), kDoing));
  return arrow::RecordBatch::Make(add_to(*block->schema()), block->num_rows(), std::move(arrays));
}

std::vector<PartitionColumns> partition_columns(const std::vector<InputFile>& files) {
  initialise_compute();
  std::vector<std::string> paths;
  for (const InputFile& file : files) paths.push_back(file.asked);
  ds::HivePartitioningFactoryOptions options;
  options.null_fallback = "__HIVE_DEFAULT_PARTITION__";
  const auto factory = ds::HivePartitioning::MakeFactory(options);
  const auto schema = checked(factory->Inspect(paths), kDoing);
  const auto partitioning = checked(factory->Finish(schema), kDoing);
  std::vector<PartitionColumns> columns;
  for (const std::string& path : paths)
    columns.emplace_back(schema->fields(), values_of(checked(partitioning->Parse(path), kDoing), *schema));
  return columns;
}

}  // namespace cadre::data
