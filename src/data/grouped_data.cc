#include "cadre/data/grouped_data.h"

#include <utility>

#include "data/plan.h"

namespace cadre::data {

using detail::PlanAccess;

GroupedData::GroupedData(Dataset dataset, std::vector<std::string> keys)
    : dataset_(std::move(dataset)), keys_(std::move(keys)) {
  require_valid({GroupBatches{keys_}});
}

Dataset GroupedData::aggregate(const std::vector<Aggregate>& aggregates, const AggregateOptions& options) const {
  return PlanAccess::append(dataset_, GroupBy{.keys = keys_, .aggregates = aggregates, .options = options});
}

Dataset GroupedData::count() const { return aggregate({data::count()}); }
Dataset GroupedData::mean(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::mean(column)}, options);
}
Dataset GroupedData::sum(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::sum(column)}, options);
}
Dataset GroupedData::min(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::min(column)}, options);
}
Dataset GroupedData::max(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::max(column)}, options);
}
Dataset GroupedData::std(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::std(column)}, options);
}
Dataset GroupedData::quantile(const std::string& column, double q, const AggregateOptions& options) const {
  return aggregate({data::quantile(column, q)}, options);
}
Dataset GroupedData::median(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::median(column)}, options);
}
Dataset GroupedData::count_distinct(const std::string& column, const AggregateOptions& options) const {
  return aggregate({data::count_distinct(column)}, options);
}

Dataset GroupedData::batches() const {
  return PlanAccess::append(dataset_.sort({keys_.begin(), keys_.end()}), GroupBatches{keys_});
}

namespace {

void refuse_batch_size(const MapBatchesOptions& options) {
  if (options.batch_size) throw InvalidArgument("map_groups cannot be used with a batch_size: each group is one batch");
}

}  // namespace

Dataset GroupedData::map_groups(const BatchFunction& function, const MapBatchesOptions& options) const {
  refuse_batch_size(options);
  return batches().map_batches(function, options);
}

Dataset GroupedData::map_groups(const Actor& actor, const MapBatchesOptions& options) const {
  refuse_batch_size(options);
  return batches().map_batches(actor, options);
}

}  // namespace cadre::data
