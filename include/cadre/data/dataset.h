/// \file
/// Datasets: rows of named columns that are read, transformed and aggregated as a stream.
///
/// A Dataset is a plan. Nothing is read until a result is requested, and then it is read piece by piece: regardless of
/// its size, it uses no more memory than its ExecutionOptions allow. Every request executes the plan anew, except for a
/// dataset that was materialized. Rows are in the plan's order: files in order, and rows in their order in each file.
///
/// Source: Ray Data (ray.data.Dataset), without its distributed blocks.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/data/batch.h"
#include "cadre/data/expression.h"
#include "cadre/data/functions.h"
#include "cadre/data/iterate.h"
#include "cadre/error.h"
#include "cadre/resources.h"
#include "cadre/value.h"

namespace arrow {
class Table;
}

namespace cadre::data {

/// A column's name and type.
struct Field {
  std::string name = {};                          ///< name of the column
  std::string type = {};                          ///< as Arrow writes it: "int64", "list<item: float>"
  bool operator==(const Field&) const = default;  ///< compares name and type
};
/// The columns of a dataset, in order.
struct Schema {
  std::vector<Field> fields = {};                  ///< in order
  std::vector<std::string> names() const;          ///< returns the names of the columns
  bool operator==(const Schema&) const = default;  ///< compares the columns, in order
};
/// Returns a line for each column: its name and its type.
std::string to_string(const Schema& schema);

/// The place where a dataset's functions run.
enum class FunctionPlace {
  /// In worker processes if cadre::init has prepared this process to start them, otherwise in threads; also beside a
  /// running fit() or another execution, but their CPUs are not accounted together. Functions with num_gpus run in
  /// threads then.
  automatic,
  processes,  ///< in worker processes; EngineError if none can be started
  /// In threads of this process: a function may then run in several threads at a time, all of them see all GPUs, and
  /// MapBatchesOptions::num_cpus and num_gpus are ignored.
  threads,
};

/// Options of a dataset's execution. Part of its plan: datasets that are derived from it have the same options.
struct ExecutionOptions {
  /// Bytes that are held at a time between reading and the use of the rows; at least 1 MiB. The limit is divided evenly
  /// among the operators that run at the same time. A piece of a file that cannot be read in smaller parts, or a
  /// function's result for one batch, may exceed it if it is larger than that share. Memory that a function allocates
  /// itself does not count. Default: a quarter of the memory that this process may use, at most 2 GiB.
  std::optional<std::int64_t> memory_limit_bytes = {};
  /// Threads that read and transform rows; above 0. Default: the CPUs that this process may use.
  std::optional<std::int64_t> num_threads = {};
  FunctionPlace function_place = FunctionPlace::automatic;  ///< see FunctionPlace
  /// Number of times that a batch whose worker process has died is given to another one; 0 or more.
  std::int64_t max_task_retries = 3;
  /// If true, stderr shows the progress of each operator. Default: true if it is a terminal.
  std::optional<bool> progress_bars = {};
  bool operator==(const ExecutionOptions&) const = default;  ///< compares all options
};

/// The handling of files with different columns in one dataset, and of datasets in Dataset::concat.
enum class SchemaMismatch {
  /// The dataset has the columns of all files, in order of first occurrence, as in Ray Data: null if a file does not
  /// have one, and with a type that can hold the types of all files. Null columns take any type; integers and floats
  /// become wider ones, integers combined with floats become floats; texts, bytes and lists become their large forms;
  /// dates and times get finer units; dictionaries combined with plain values (which Ray refuses) become plain values;
  /// structs have the fields of all files. Types that do not combine are a StorageError with both files, the column and
  /// both types; a value that its column's type cannot hold is a StorageError with its file.
  unify,
  refuse,  ///< StorageError with both files and the difference
};

/// Options of read_parquet.
struct ParquetOptions {
  std::vector<std::string> columns = {};  ///< only these, in this order; default: all
  std::optional<Expression> filter = {};  ///< only rows that meet it; it may use columns that are not in `columns`
  /// If true, folders named like "year=2024" below the given path become columns: of int32 if all their values are such
  /// numbers, else of texts, null if a file is in no such folder. They come after the files' own columns, which take
  /// precedence.
  bool hive_partitioning = true;
  /// See SchemaMismatch. Files in folders that a filter excludes are not read and do not contribute columns.
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;
};
/// Options of read_csv.
struct CsvOptions {
  char delimiter = ',';                        ///< between values
  std::vector<std::string> column_names = {};  ///< for files without a header line; default: they have one
  std::vector<std::string> columns = {};       ///< only these, in this order; default: all
  std::vector<std::pair<std::string, std::string>> types = {};  ///< by column, as Field::type; default: inferred
  bool hive_partitioning = true;                                ///< see ParquetOptions
  /// See SchemaMismatch; columns are judged by the beginnings of all files.
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;
};
/// Options of read_json.
struct JsonOptions {
  std::vector<std::string> columns = {};                        ///< only these, in this order; default: all
  std::vector<std::pair<std::string, std::string>> types = {};  ///< by column, as Field::type; default: inferred
  bool hive_partitioning = true;                                ///< see ParquetOptions
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;       ///< see CsvOptions
};

/// Options of map_batches.
struct MapBatchesOptions {
  /// Rows in a batch, above 0; only the last batch of the dataset may have fewer. Default: batches as they are read.
  std::optional<std::int64_t> batch_size = {};
  /// Number of workers, each a process or a thread with the resources below; above 0. If set, all of them must fit into
  /// the machine in addition to those of the dataset's other operators. Default: for a function as many as there are
  /// CPUs for, for a class 1.
  std::optional<std::int64_t> concurrency = {};
  double num_cpus = 1;             ///< CPUs of each worker; 0 or more
  double num_gpus = 0;             ///< GPUs of each worker, 0 or more; requires a batch_size
  Config constructor_config = {};  ///< argument of a class's constructor
  Config config = {};              ///< second argument of a function
};
/// Options of map and filter.
struct MapOptions {
  std::optional<std::int64_t> concurrency = {};  ///< workers, as in MapBatchesOptions
  double num_cpus = 1;                           ///< CPUs of each worker; 0 or more
};

/// A column to sort by.
struct SortKey {
  SortKey() = default;  ///< no column
  /// Names a column.
  SortKey(std::string name, bool is_descending = false) : column(std::move(name)), descending(is_descending) {}
  /// Names a column.
  SortKey(const char* name, bool is_descending = false) : column(name), descending(is_descending) {}

  std::string column = {};                          ///< its name
  bool descending = false;                          ///< the greatest value first
  bool operator==(const SortKey&) const = default;  ///< compares name and direction
};

/// The rows that a join returns.
enum class JoinType {
  inner,        ///< a row for each pair of a left and a right row with equal keys
  left_outer,   ///< these, and left rows that no right row matches; null in the right columns
  right_outer,  ///< these, and right rows that no left row matches; null in the left columns
  full_outer,   ///< all three
  left_semi,    ///< left rows that a right row matches, each once and without right columns
  right_semi,   ///< right rows that a left row matches
  left_anti,    ///< left rows that no right row matches
  right_anti,   ///< right rows that no left row matches
};
/// Options of join.
struct JoinOptions {
  std::vector<std::string> on = {};        ///< key columns of the left dataset, 1 or more
  std::vector<std::string> right_on = {};  ///< key columns of the right one, as many; default: those of `on`
  /// Appended to the names of left columns that the right dataset has too, except keys.
  std::string left_suffix = {};
  std::string right_suffix = {};  ///< appended to the names of right columns that the left dataset has too
};

/// Options of train_test_split.
struct TrainTestSplitOptions {
  bool shuffle = false;    ///< shuffle all rows before
  std::uint64_t seed = 0;  ///< seed for shuffle
  /// A column whose values have the same proportions in both parts, within one row each, or as near as a row of each
  /// value in each part allows; of any type that groupby has. The test gets the last rows of each value. The column is
  /// read once to find out which they are, for which four bytes of each row are held in memory, and a bit afterwards;
  /// both parts read all rows. Every value needs two rows, and each part as many rows as there are values; otherwise
  /// InvalidArgument. Empty: any rows.
  std::string stratify = {};
};

/// Options of aggregates: values that they leave out.
struct AggregateOptions {
  /// If false, a column with nulls has the result null; count counts its nulls, too, and count_distinct has null as one
  /// more value, as Ray Data has it.
  bool ignore_nulls = true;
  /// If true, NaN is left out like null. Otherwise sum, mean and std of a column with NaN are NaN, and min and max are
  /// those of its other values.
  bool ignore_nan = false;
  std::int64_t ddof = 1;  ///< for std: it divides by the number of values minus ddof; 0 or more
};
/// One aggregate of a column; made by mean(), sum() and the like of this namespace.
struct Aggregate {
  /// The kinds of aggregates.
  enum class Kind {
    count,  ///< number of values that are not left out
    sum,    ///< an integer for integers; null if there are no values
    min,    ///< as returned by Batch::value
    max,    ///< as returned by Batch::value
    mean,   ///< a double
    std,    ///< the standard deviation, a double; NaN for ddof or fewer values
    /// A double, interpolated between the two values around it, as numpy and pandas do it by default. All values of
    /// a group, or without groups of all rows, are held in memory, as doubles.
    quantile,
    count_distinct,  ///< number of different values; they are held in memory as those of quantile
  };
  Kind kind = Kind::count;  ///< see Kind
  /// Column of numbers or truth values; decimals are summed as doubles. min and max also accept texts, dates, times and
  /// decimals, whose results are texts as in Batch::value; count_distinct accepts these, too, and count any type.
  /// Empty, for count only: rows are counted.
  std::string column = {};
  double q = 0.5;                                     ///< for quantile: which, from 0 to 1
  bool operator==(const Aggregate&) const = default;  ///< compares all members
};
Aggregate count();                           ///< counts rows; its result is called "count()"
Aggregate count(const std::string& column);  ///< see Aggregate::Kind::count
Aggregate sum(const std::string& column);    ///< see Aggregate::Kind::sum
Aggregate min(const std::string& column);    ///< see Aggregate::Kind::min
Aggregate max(const std::string& column);    ///< see Aggregate::Kind::max
Aggregate mean(const std::string& column);   ///< see Aggregate::Kind::mean
Aggregate std(const std::string& column);    ///< see Aggregate::Kind::std
/// See Aggregate::Kind::quantile. `q`: from 0 to 1. Its result is called "quantile(column, 0.9)".
Aggregate quantile(const std::string& column, double q);
Aggregate median(const std::string& column);          ///< the quantile of 0.5; its result is called "median(column)"
Aggregate count_distinct(const std::string& column);  ///< see Aggregate::Kind::count_distinct
/// Returns "mean(column)" and the like.
std::string to_string(const Aggregate& aggregate);

/// Options of split.
struct SplitOptions {
  bool equal = false;  ///< all parts have equally many rows, and up to n - 1 rows at the end are left out
};

/// Options of write_parquet.
struct WriteParquetOptions {
  std::int64_t max_rows_per_file = std::int64_t{16} << 20;    ///< above 0
  std::int64_t rows_per_row_group = std::int64_t{128} << 10;  ///< above 0; the unit that readers decode at a time
  std::string compression = "zstd";                           ///< "none", "snappy", "gzip", "zstd" or "lz4"
};

/// Statistics of one operator of an execution.
struct OperatorStats {
  std::string name = {};     ///< "read_parquet", "map_batches(Predictor)"
  std::int64_t tasks = 0;    ///< pieces of work
  std::int64_t rows = 0;     ///< rows produced
  std::int64_t bytes = 0;    ///< bytes produced
  double busy_s = 0;         ///< seconds, sum over its threads, without waiting for rows or for memory
  std::int64_t workers = 0;  ///< threads or processes
  std::int64_t skipped = 0;  ///< files and rows left out because of OnError::skip (cadre/data/read.h)
};
/// Statistics of an execution.
struct ExecutionStats {
  std::vector<OperatorStats> operators = {};  ///< in order, beginning with the read
  double wall_s = 0;                          ///< seconds, from its beginning to its end
  std::int64_t peak_bytes = 0;                ///< maximum held at a time; see ExecutionOptions
  std::int64_t memory_limit_bytes = 0;        ///< the limit that applied
};
/// Returns a table, for people.
std::string to_string(const ExecutionStats& stats);

/// Options of write_csv.
struct WriteCsvOptions {
  std::int64_t max_rows_per_file = std::int64_t{16} << 20;  ///< above 0
  char delimiter = ',';                                     ///< between values
  bool include_header = true;                               ///< the first line of each file has the columns' names
};
/// Options of write_json.
struct WriteJsonOptions {
  std::int64_t max_rows_per_file = std::int64_t{16} << 20;  ///< above 0
};

class GroupedData;
namespace detail {
class Plan;
class PlanAccess;
}  // namespace detail

/// A dataset: see the top of this file. A value: copies are cheap, and functions that transform it return another
/// Dataset.
///
/// Functions that execute the plan (count, take, aggregates, iter_batches, ...) throw
///   - InvalidArgument for arguments that do not fit: an unknown column, a batch size without rows, more workers than
///     the resources allow; before anything has run, if the error can be detected by then;
///   - NotFound if a file or folder does not exist any more;
///   - StorageError, with file and row group, if a file cannot be read, is truncated, or has columns that do not
///     combine with those of the dataset's other files (see SchemaMismatch);
///   - DatasetError, with the name of the function and its error, if a function or a constructor has thrown or its
///     worker has died;
///   - MemoryLimitError if a group of map_groups, the right rows of one key in a join, or the values that quantile and
///     count_distinct keep (of one group, or without groups of all rows) need more memory than their share of
///     ExecutionOptions::memory_limit_bytes;
///   - EngineError if workers cannot be started.
///
/// All functions may be called in any thread, and several at a time; but only one execution at a time has worker
/// processes.
class Dataset {
 public:
  /// Makes a dataset without rows and columns.
  Dataset();
  /// Makes a dataset from a stored value. Throws InvalidArgument if the value is not a dataset or was stored by a newer
  /// version of Cadre, and for functions that this program does not have.
  explicit Dataset(const Value& stored);
  /// Converts the plan to a value that a Config can carry to workers: Config{{"train", dataset}}. Paths are absolute.
  /// Rows that this process has in memory (from_arrow, from_tensors, materialize) are put into the object store, and
  /// stay there as long as this process has a Dataset with them.
  operator Value() const;

  // ---- Transformations

  /// Returns the result of calling a function on each batch. The function may return more or fewer rows than it gets,
  /// or other columns; all batches that it returns must have the same columns. It is called once for each batch, and
  /// with one worker in the order of the rows. Throws InvalidArgument for invalid options.
  Dataset map_batches(const BatchFunction& function, const MapBatchesOptions& options = {}) const;
  /// Does the same with an object of a class in each worker.
  Dataset map_batches(const Actor& actor, const MapBatchesOptions& options = {}) const;
  /// \cond mistakes, which do not compile
  template <class WRITE_MapBatchesOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Dataset map_batches(const BatchFunction& function, ...) const
      CADRE_DELETED("write MapBatchesOptions before the braces, and the compiler names the field");
  template <class F>
    requires(!std::convertible_to<F, BatchFunction> && !std::convertible_to<F, Actor> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE("map_batches takes no lambda or function itself but its name: write fn<f>")
  Dataset map_batches(F&& function, const MapBatchesOptions& options = {}) const;
  template <class F>
    requires(!std::convertible_to<F, RowFunction> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE("map takes no lambda or function itself but its name: write fn<f>, of Row f(const Row&)")
  Dataset map(F&& function, const MapOptions& options = {}) const;
  template <class F>
    requires(!std::convertible_to<F, RowPredicate> && !std::convertible_to<F, Expression> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE("filter takes no lambda or function itself but its name: write fn<f>, of bool f(const Row&)")
  Dataset filter(F&& function, const MapOptions& options = {}) const;
  template <class F>
    requires(!std::convertible_to<F, FlatMapFunction> && cadre::detail::NotFn<F>)
  CADRE_MISTAKE(
      "flat_map takes no lambda or function itself but its name: write fn<f>, of std::vector<Row> f(const Row&)")
  Dataset flat_map(F&& function, const MapOptions& options = {}) const;
  /// \endcond
  /// Returns the result of calling a function on each row. Batches are much faster.
  Dataset map(const RowFunction& function, const MapOptions& options = {}) const;
  /// Returns all rows that a function makes of each row, any number of them. Batches are much faster.
  Dataset flat_map(const FlatMapFunction& function, const MapOptions& options = {}) const;
  /// Returns the rows for which a function returns true. Batches, and conditions, are much faster.
  Dataset filter(const RowPredicate& predicate, const MapOptions& options = {}) const;
  /// Returns the rows that meet a condition. Directly after a read it becomes part of the read: row groups whose
  /// statistics exclude it are not read, and for Parquet files in folders whose names exclude it not even the metadata
  /// is read.
  Dataset filter(const Expression& condition) const;
  /// Returns these columns, in this order. Directly after a read only these columns are read.
  Dataset select_columns(const std::vector<std::string>& columns) const;
  /// Returns all columns, those named first in a pair with the name that is second. Throws InvalidArgument if a name is
  /// there twice on either side; the execution throws it for an unknown column and for two columns of one name.
  Dataset rename_columns(const std::vector<std::pair<std::string, std::string>>& names) const;
  /// Returns the first `count` rows, 0 or more. Later rows are not read.
  Dataset limit(std::int64_t count) const;
  /// Returns all rows except the first `count`, 0 or more.
  Dataset skip(std::int64_t count) const;
  /// Returns the rows of this dataset followed by those of the others. Columns that differ are unified as those of
  /// files, see SchemaMismatch, if they are known before a function runs; otherwise, and with `refuse`, all datasets
  /// must have the same columns. The execution throws InvalidArgument, with both datasets, for types that do not
  /// combine, and StorageError for columns that are not the same.
  Dataset concat(const std::vector<Dataset>& others, SchemaMismatch schema_mismatch = SchemaMismatch::unify) const;
  /// Returns all rows in a random order that depends only on the seed. The rows are held in memory, or on disk if they
  /// take more than half the memory limit.
  Dataset random_shuffle(std::uint64_t seed) const;
  /// Returns a random part of the rows, in their order: each row with the probability `fraction`, from 0 to 1. The
  /// choice depends only on the seed and the row's place.
  Dataset random_sample(double fraction, std::uint64_t seed) const;
  /// Returns all rows, sorted by the first key, those with equal values by the next one, and those with equal keys in
  /// their order. NaN come after all numbers, and nulls after them, in both directions. Keys are numbers, truth values,
  /// texts (by their bytes), bytes, dates, times and decimals, and dictionaries of these. The rows are held in memory,
  /// or on disk if they take more than half the memory limit. Throws InvalidArgument without keys, and for a column
  /// that is there twice; the execution throws it for an unknown column and other types.
  Dataset sort(const std::vector<SortKey>& keys) const;
  /// Does the same with one key.
  template <std::convertible_to<std::string> Name>
  Dataset sort(const Name& column, bool descending = false) const {
    return sort(std::vector<SortKey>{{std::string(column), descending}});
  }
  /// Groups the rows by the values of key columns, of the types that sort has. A null is equal to a null, and NaN to
  /// NaN. Throws InvalidArgument without keys, and for a column that is there twice.
  GroupedData groupby(const std::vector<std::string>& keys) const;
  /// Does the same with one key.
  template <std::convertible_to<std::string> Name>
  GroupedData groupby(const Name& key) const;
  /// Returns the rows of this dataset, the left one, combined with those of another one that have equal keys. Keys have
  /// the types that sort has, the same on both sides; a dictionary is like its values. A null equals nothing, and NaN
  /// equals NaN. The columns are those of the left dataset, then those of the right one without its keys; a right_outer
  /// join has the keys of the right dataset instead, in their places there. Rows are in the order of the left dataset,
  /// rows of equal left ones in that of the right one, and right rows without left ones come last. The rows of the
  /// right dataset, of a right_semi and right_anti join those of the left one, are held in memory, or both
  /// datasets on disk if they take more than their share of the memory limit. Throws InvalidArgument if `on` and
  /// `right_on` do not have equally many columns; the execution throws it for unknown columns, for keys of different
  /// types, and for two columns of one name in the result.
  Dataset join(const Dataset& right, JoinType type, const JoinOptions& options) const;
  /// Returns the columns of this dataset and of others side by side, row by row. A name that is there already gets the
  /// suffix "_1", "_2" and so on. The execution throws InvalidArgument if the numbers of rows differ, before it begins
  /// if they are known.
  Dataset zip(const std::vector<Dataset>& others) const;
  /// Returns the different values of a column, in the order of their first occurrence, as Batch::value returns them;
  /// with a null if there is one, unless `ignore_nulls`. Executes the plan. Keys' types are those of groupby.
  std::vector<Value> unique(const std::string& column, bool ignore_nulls = false) const;
  /// Returns the first rows for training and the last ones, a part of `test_fraction` of all, for a test; the latter
  /// are rounded up. Both have rows. Counts the rows. Throws InvalidArgument unless test_fraction is between 0 and 1,
  /// and if one of the parts would be empty.
  std::pair<Dataset, Dataset> train_test_split(double test_fraction, const TrainTestSplitOptions& options = {}) const;
  /// Does the same with a number of rows for the test. Throws InvalidArgument unless it is above 0 and below the number
  /// of rows.
  template <std::integral Count>
  std::pair<Dataset, Dataset> train_test_split(Count test_rows, const TrainTestSplitOptions& options = {}) const {
    return split_off(static_cast<std::int64_t>(test_rows), options);
  }
  /// Returns n consecutive parts, 1 or more; if the rows do not divide evenly, the first parts have one row more.
  /// Counts the rows.
  std::vector<Dataset> split(std::int64_t n, const SplitOptions& options = {}) const;
  /// Returns a dataset with all rows in memory, so that nothing is executed again. The caller must ensure that they
  /// fit.
  Dataset materialize() const;

  /// Sets a name for messages, statistics and progress bars, which datasets that are derived later inherit. Returns
  /// this dataset.
  Dataset& set_name(std::string name);
  /// Returns the name; empty: none.
  const std::string& name() const;
  /// Returns the dataset with other options.
  Dataset with_options(const ExecutionOptions& options) const;
  /// Returns the options of its execution.
  const ExecutionOptions& options() const;

  // ---- Content

  /// Returns the columns. Reads as little as possible: the metadata of Parquet files; if there are functions, as much
  /// as their first batch needs.
  Schema schema() const;
  /// Returns the names of the columns.
  std::vector<std::string> columns() const { return schema().names(); }
  /// Returns the number of rows. For Parquet files it comes from their metadata; text files are read to count it, and
  /// after functions and conditions the whole plan is executed.
  std::int64_t count() const;
  /// Does the same as count().
  std::int64_t size() const { return count(); }
  /// Returns the size of all rows in memory, in bytes. Executes the whole plan.
  std::int64_t size_bytes() const;

  /// Returns the first rows, at most `count`, 0 or more.
  std::vector<Row> take(std::int64_t count = 20) const;
  /// Returns all rows. Throws InvalidArgument if there are more than `most`.
  std::vector<Row> take_all(std::optional<std::int64_t> most = {}) const;
  /// Returns the first rows as one batch. Throws InvalidArgument if there are none.
  Batch take_batch(std::int64_t count = 20) const;
  /// Writes the first rows to stdout, one JSON object per line.
  void show(std::int64_t count = 20) const;

  /// Computes several aggregates in one execution: a row with "mean(a)", "max(b)" and so on, null if there are no
  /// values.
  Row aggregate(const std::vector<Aggregate>& aggregates, const AggregateOptions& options = {}) const;
  /// Computes an aggregate: see Aggregate::Kind. These functions throw InvalidArgument if the column has no
  /// values, and with AggregateOptions::ignore_nulls off if it has nulls.
  double mean(const std::string& column, const AggregateOptions& options = {}) const;
  Value sum(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  Value min(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  Value max(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  double std(const std::string& column, const AggregateOptions& options = {}) const;  ///< see mean
  /// See mean, and Aggregate::Kind::quantile. Throws InvalidArgument for a `q` that is not from 0 to 1.
  double quantile(const std::string& column, double q, const AggregateOptions& options = {}) const;
  double median(const std::string& column, const AggregateOptions& options = {}) const;  ///< the quantile of 0.5
  /// Returns the number of different values of a column, without null unless AggregateOptions::ignore_nulls is off; 0
  /// if there are none.
  std::int64_t count_distinct(const std::string& column, const AggregateOptions& options = {}) const;

  /// Returns the batches, in the order of the rows, prepared ahead in threads. Each loop over the returned object is an
  /// execution.
  Batches iter_batches(const IterBatchesOptions& options = {}) const;
  /// Returns a rank's share of the rows, for training or for an evaluation.
  Shard shard(const ShardOptions& options) const;

  /// Writes Parquet files "part_000000.parquet", ... into a folder, which is made if it does not exist, or below the
  /// URI of a storage ("s3://bucket/folder"), and returns their paths or URIs. No file is visible before it is
  /// complete; in a folder all of them appear at the end, in a storage one after the other. A dataset without rows
  /// becomes one file without rows; if its columns come from a function, which was never called, they are unknown and
  /// no file is written. Throws InvalidArgument if the folder already has Parquet files, StorageError with the file
  /// (OutOfSpace on a full disk) if it cannot be written; files written by then are removed. In addition to
  /// ExecutionOptions::memory_limit_bytes writing needs memory for one compressed row group, and for a storage at most
  /// 32 MiB.
  std::vector<std::filesystem::path> write_parquet(const std::filesystem::path& folder,
                                                   const WriteParquetOptions& options = {}) const;

  /// Writes CSV files "part_000000.csv", ..., in the way of write_parquet. Null is an empty value, texts have quotes,
  /// and a text of no characters is a pair of quotes; NaN is "nan". read_csv reads the same values, but CSV has no
  /// types: give it CsvOptions::types for texts that look like numbers or dates, doubles without fractions, and the
  /// like. Throws InvalidArgument for columns that have no text form, such as lists, and also in the cases of
  /// write_parquet.
  std::vector<std::filesystem::path> write_csv(const std::filesystem::path& folder,
                                               const WriteCsvOptions& options = {}) const;
  /// Writes files of JSON objects, one per line: "part_000000.json", ..., in the way of write_parquet. Values have the
  /// form that Batch::value gives them; NaN and the infinities, which JSON does not have, are null.
  std::vector<std::filesystem::path> write_json(const std::filesystem::path& folder,
                                                const WriteJsonOptions& options = {}) const;

  /// Returns the statistics of the latest completed execution of this Dataset or a copy of it; empty if there was none.
  std::optional<ExecutionStats> stats() const;

 private:
  friend class detail::PlanAccess;
  struct State;
  explicit Dataset(std::shared_ptr<State> state);
  // Return all rows except the last `count`, and these. `rows`: the number of all rows; without it they are counted.
  std::pair<Dataset, Dataset> split_off(std::int64_t count, const TrainTestSplitOptions& options) const;
  std::pair<Dataset, Dataset> split_off(std::int64_t count, std::int64_t rows,
                                        const TrainTestSplitOptions& options) const;

  std::shared_ptr<State> state_;  // never null; shared by copies, and immutable except for the statistics
};

/// An error because a function or class of the program has thrown, or its worker process has died.
class DatasetError : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// An error because an operator needs more memory at a time than its share of ExecutionOptions::memory_limit_bytes. Its
/// message says how much, and what to do.
class MemoryLimitError : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// Reads Parquet files: paths of files, of folders (all "*.parquet" in them, at any depth, in the order of their paths;
/// names that begin with '.' or '_' are skipped), shell patterns ("data/train-*.parquet"), or URIs of a storage
/// ("s3://bucket/folder", also gs, abfs and file). A relative path is made absolute. Row groups are the units of
/// reading and of shards. The metadata of many files is read in parallel. Throws NotFound if there is no such file or
/// folder, or no file in it, and InvalidArgument for invalid options.
Dataset read_parquet(const std::vector<std::string>& paths, const ParquetOptions& options = {});
/// Does the same with one path.
Dataset read_parquet(const std::string& path, const ParquetOptions& options = {});
/// Reads CSV files; in folders "*.csv", or with ".gz", ".zst", ".bz2" or ".lz4" appended, which selects the
/// decompression; see read_parquet for paths. Types are inferred from the first megabyte of the first file, for a
/// column without values there from the next files. Empty values are nulls; in a column of texts one in quotes is a
/// text of no characters, and "NA" a text. In other columns "NA", "null" and the like are nulls, too, and "nan" is NaN
/// in those of floating-point numbers. In a file of one column an empty line is a null, else it is left out. The number
/// of rows is only known after reading everything: count(), split() and shards read the files to get it.
Dataset read_csv(const std::vector<std::string>& paths, const CsvOptions& options = {});
/// Does the same with one path.
Dataset read_csv(const std::string& path, const CsvOptions& options = {});
/// Reads files of JSON objects, one per line; in folders "*.json", "*.jsonl" and "*.ndjson"; see read_csv for the rest.
/// Entries that an object lacks are null; types and names are those of the first megabyte of the first file.
Dataset read_json(const std::vector<std::string>& paths, const JsonOptions& options = {});
/// Does the same with one path.
Dataset read_json(const std::string& path, const JsonOptions& options = {});
/// Returns a dataset of a table in memory, which is not copied.
Dataset from_arrow(const std::shared_ptr<::arrow::Table>& table);
/// Returns a dataset of batches in memory, which are not copied. Throws InvalidArgument unless they have the same
/// columns.
Dataset from_batches(const std::vector<Batch>& batches);
/// Returns a dataset of rows in memory; see to_batch.
Dataset from_rows(const std::vector<Row>& rows);
/// Returns the integers from 0 to count - 1 as the column "id"; `count` is 0 or more.
Dataset range(std::int64_t count);

}  // namespace cadre::data
