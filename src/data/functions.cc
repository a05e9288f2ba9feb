#include "data/functions.h"

#include <arrow/builder.h>
#include <arrow/compute/api_vector.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "base/registry.h"
#include "data/arrow_status.h"
#include "data/compute.h"

namespace cadre::data {
namespace {

// Local to a function, because it is used while objects of other files are initialised.
base::Registry<detail::BatchCallFactory>& batch_calls() {
  static base::Registry<detail::BatchCallFactory> instance;
  return instance;
}

std::string key_of(std::string_view kind, std::string_view name) { return fmt::format("{} {}", kind, name); }

MakeBatchCall make_host_call = nullptr;

detail::BatchCallFactory find_factory(std::string_view kind, std::string_view name) {
  const std::string key = key_of(kind, name);
  const auto& duplicates = batch_calls().duplicates();
  if (std::ranges::find(duplicates, key) != duplicates.end())
    throw InvalidArgument(
        fmt::format("two of the program's functions or classes for datasets are called \"{}\"; rename one", name));
  if (const auto* found = batch_calls().find(key)) return *found;
  throw InvalidArgument(fmt::format("this program has no {} \"{}\" for datasets; it has: {}", kind, name,
                                    fmt::join(batch_calls().names(), ", ")));
}

}  // namespace

void set_host_functions(MakeBatchCall make) { make_host_call = make; }

std::function<BatchCall()> find_batch_call(const Call& call, const CallContext& context) {
  if (!call.host_function.is_set())
    return [make = find_factory(call.kind, call.name), config = call.config, context] { return make(config, context); };
  if (make_host_call == nullptr)
    throw InvalidArgument(
        fmt::format("the {} \"{}\" of a dataset is one of a host, such as a Python program, and this program has none",
                    call.kind, call.name));
  return [value = call.host_function.value, context] { return make_host_call(value, context); };
}

bool detail::register_batch_call(std::string_view kind, std::string_view name, BatchCallFactory make) {
  batch_calls().add(key_of(kind, name), make);
  return true;
}

Batch detail::map_rows(const Batch& batch, const std::function<Row(const Row&)>& function) {
  std::vector<Row> rows;
  for (std::int64_t row = 0; row < batch.num_rows(); ++row) rows.push_back(function(batch.row(row)));
  return to_batch(rows);
}

Batch detail::flat_map_rows(const Batch& batch, const std::function<std::vector<Row>(const Row&)>& function) {
  std::vector<Row> rows;
  for (std::int64_t row = 0; row < batch.num_rows(); ++row) {
    for (Row& made : function(batch.row(row))) rows.push_back(std::move(made));
  }
  return to_batch(rows);
}

Batch detail::filter_rows(const Batch& batch, const std::function<bool(const Row&)>& predicate) {
  arrow::BooleanBuilder keep;
  for (std::int64_t row = 0; row < batch.num_rows(); ++row)
    check(keep.Append(predicate(batch.row(row))), "cannot filter rows");
  const auto mask = checked(keep.Finish(), "cannot filter rows");
  return Batch(keep_rows(batch.arrow(), mask, arrow::default_memory_pool()));
}

}  // namespace cadre::data
