/// \file
/// Rows of a dataset that are grouped by the values of key columns.
///
///     dataset.groupby("city").mean("fare");
///     dataset.groupby({"city", "day"}).aggregate({data::count(), data::max("fare")});
///
/// Source: ray.data.grouped_data.GroupedData.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"
#include "cadre/data/functions.h"

namespace cadre::data {

/// A grouped dataset, made by Dataset::groupby. A plan: nothing runs before the rows of a result are requested.
/// Threads: any.
class GroupedData {
 public:
  /// Returns a row for each group, in the order of the groups' first rows: the key columns, then a column for each
  /// aggregate: "mean(fare)", "count()". Nulls, NaN and sums are treated as in Dataset::aggregate. Integers sum to
  /// int64, other numbers to double; mean, std and quantile are double, and min and max have the type of their column.
  /// Dictionaries become plain values. Without aggregates the result has the distinct keys. The keys and some numbers
  /// for each group are held in memory, or on disk if they take more than half their share of the memory limit. Throws
  /// InvalidArgument for a negative ddof, and for an aggregate that is given twice; the execution throws it for an
  /// unknown column, and for types that cannot be keys or aggregated.
  Dataset aggregate(const std::vector<Aggregate>& aggregates, const AggregateOptions& options = {}) const;

  Dataset count() const;  ///< counts the rows of each group, in column "count()"
  Dataset mean(const std::string& column, const AggregateOptions& options = {}) const;  ///< see aggregate
  Dataset sum(const std::string& column, const AggregateOptions& options = {}) const;   ///< see aggregate
  Dataset min(const std::string& column, const AggregateOptions& options = {}) const;   ///< see aggregate
  Dataset max(const std::string& column, const AggregateOptions& options = {}) const;   ///< see aggregate
  Dataset std(const std::string& column, const AggregateOptions& options = {}) const;   ///< see aggregate
  /// See aggregate, and Aggregate::Kind::quantile.
  Dataset quantile(const std::string& column, double q, const AggregateOptions& options = {}) const;
  Dataset median(const std::string& column, const AggregateOptions& options = {}) const;          ///< see quantile
  Dataset count_distinct(const std::string& column, const AggregateOptions& options = {}) const;  ///< see aggregate

  /// Returns the result of calling a function on each group: a batch of all its rows, in their order. Groups come in
  /// the order of their keys, as Dataset::sort sorts them. The function may return any number of rows; see
  /// Dataset::map_batches. A group is held in memory. Throws InvalidArgument if batch_size is set, and for
  /// invalid options.
  Dataset map_groups(const BatchFunction& function, const MapBatchesOptions& options = {}) const;
  /// Does the same with an object of a class in each worker.
  Dataset map_groups(const Actor& actor, const MapBatchesOptions& options = {}) const;

 private:
  friend class Dataset;
  GroupedData(Dataset dataset, std::vector<std::string> keys);
  // Returns the groups, each as one batch.
  Dataset batches() const;

  Dataset dataset_;
  std::vector<std::string> keys_;
};

template <std::convertible_to<std::string> Name>
GroupedData Dataset::groupby(const Name& key) const {
  return groupby(std::vector<std::string>{std::string(key)});
}

}  // namespace cadre::data
