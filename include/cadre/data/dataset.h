/// \file
/// Datasets: rows of named columns that are read, changed and counted as a stream.
///
/// A Dataset is a plan. Nothing is read until something is asked of it, and then it is read piece by piece: whatever
/// its size, it takes no more memory than its ExecutionOptions say. Every question runs the plan anew, except on one
/// that was materialized. The order of the rows is the plan's: that of the files, and in each that of its rows.
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
  std::string name = {};                          ///< of the column
  std::string type = {};                          ///< as Arrow writes it: "int64", "list<item: float>"
  bool operator==(const Field&) const = default;  ///< the same name and type
};
/// The columns of a dataset, in order.
struct Schema {
  std::vector<Field> fields = {};                  ///< in order
  std::vector<std::string> names() const;          ///< of the columns
  bool operator==(const Schema&) const = default;  ///< the same columns
};
/// A line for each column: its name and its type.
std::string to_string(const Schema& schema);

/// Where the functions of a program run that a dataset calls.
enum class FunctionPlace {
  /// In worker processes where cadre::init has prepared this process to start some and nobody else does, else in
  /// threads.
  automatic,
  processes,  ///< in worker processes; an EngineError where there can be none
  /// In threads of this process: a function may then run in several at a time, all of them see all GPUs, and
  /// MapBatchesOptions::num_cpus and num_gpus do not count.
  threads,
};

/// How a dataset is executed. Part of its plan, so that a dataset that comes from another has the same.
struct ExecutionOptions {
  /// Bytes that are held at a time between reading and what is done with the rows; at least 1 MiB. It is shared evenly
  /// by the operators that run at the same time. A piece of a file that cannot be read in smaller parts, or what a
  /// function makes of one batch, may go beyond it where it is larger than that share. What a function allocates itself
  /// does not count. Default: a quarter of the machine's memory, at most 2 GiB.
  std::optional<std::int64_t> memory_limit_bytes = {};
  /// Threads that read and change rows; above 0. Default: the CPUs that this process may use.
  std::optional<std::int64_t> num_threads = {};
  FunctionPlace function_place = FunctionPlace::automatic;  ///< see there
  /// How often a batch whose worker process has died is given to another one; 0 or more.
  std::int64_t max_task_retries = 3;
  /// Whether stderr shows how far each operator is. Default: if it is a terminal.
  std::optional<bool> progress_bars = {};
  bool operator==(const ExecutionOptions&) const = default;  ///< the same options
};

/// Says how files of one dataset whose columns differ are read.
enum class SchemaMismatch {
  /// The dataset has the columns of all files, in the order in which they first come, as Ray Data has it: null where a
  /// file lacks one, and of the type that the types of all files go into. Nulls become anything; integers and floats
  /// wider ones, integers beside floats floats; texts, bytes and lists their large forms; dates and times finer units;
  /// dictionaries beside plain values (which Ray refuses) plain values; structs have the fields of all. Types that do
  /// not go together are a StorageError with both files, the column and both types; so is a value that its column's
  /// type does not have, with its file.
  unify,
  refuse,  ///< a StorageError with both files and what differs
};

/// How read_parquet reads.
struct ParquetOptions {
  std::vector<std::string> columns = {};  ///< only these, in this order; default: all
  std::optional<Expression> filter = {};  ///< only rows that meet it; it may use other columns than those
  /// Whether folders that are named "year=2024" below what is read are columns: of int32 where all their values are
  /// such numbers, else of texts, null where a file lies in no such folder; behind the files' own columns, which win.
  bool hive_partitioning = true;
  /// Files in folders that a filter leaves out are not looked at, and say nothing of the columns.
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;
};
/// How read_csv reads.
struct CsvOptions {
  char delimiter = ',';                        ///< between values
  std::vector<std::string> column_names = {};  ///< where the files have no line with names; default: they have
  std::vector<std::string> columns = {};       ///< only these, in this order; default: all
  std::vector<std::pair<std::string, std::string>> types = {};  ///< by column, as Field::type; default: as they look
  bool hive_partitioning = true;                                ///< see ParquetOptions
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;       ///< see there; by what the beginnings of all files say
};
/// How read_json reads.
struct JsonOptions {
  std::vector<std::string> columns = {};                        ///< only these, in this order; default: all
  std::vector<std::pair<std::string, std::string>> types = {};  ///< by column, as Field::type; default: as they look
  bool hive_partitioning = true;                                ///< see ParquetOptions
  SchemaMismatch schema_mismatch = SchemaMismatch::unify;       ///< see CsvOptions
};

/// How map_batches calls.
struct MapBatchesOptions {
  /// Rows in a batch, above 0; only the last batch of the dataset may have fewer. Default: as they are read.
  std::optional<std::int64_t> batch_size = {};
  /// Workers: each is a process, or a thread, with the resources below; above 0. Where it is said, all of them must fit
  /// into the machine beside those of the dataset's other operators. Default: of a function as many as there are CPUs
  /// for, of a class 1.
  std::optional<std::int64_t> concurrency = {};
  double num_cpus = 1;             ///< of each worker; 0 or more
  double num_gpus = 0;             ///< of each worker; a batch_size is needed with them
  Config constructor_config = {};  ///< what a class is made from
  Config config = {};              ///< what a function gets behind the batch
};
/// How map and filter call.
struct MapOptions {
  std::optional<std::int64_t> concurrency = {};  ///< workers, as in MapBatchesOptions
  double num_cpus = 1;                           ///< of each worker; 0 or more
};

/// What aggregates leave out. Whatever is left counts, wherever it stands.
struct AggregateOptions {
  bool ignore_nulls = true;  ///< otherwise the result of a column with nulls is null
  /// NaN is a value like others, by default: sum, mean and std of a column that has one are NaN, min and max are those
  /// of the other values. Whether it is left out as a null is.
  bool ignore_nan = false;
  std::int64_t ddof = 1;  ///< of std: it divides by the number of values less this; 0 or more
};
/// One aggregate of a column; made by mean(), sum(), ... of this namespace.
struct Aggregate {
  /// What it is.
  enum class Kind {
    count,  ///< values that are not left out
    sum,    ///< of integers an integer; of no values null
    min,    ///< as Batch::value gives it
    max,    ///< as Batch::value gives it
    mean,   ///< a double
    std,    ///< the standard deviation, a double; of ddof values or fewer NaN
  };
  Kind kind = Kind::count;  ///< see there
  /// Of numbers or truth values; decimals are summed as doubles. min and max also of texts, dates, times and decimals,
  /// which Batch::value says as what; count of anything.
  std::string column = {};
};
Aggregate count(const std::string& column);  ///< see Aggregate::Kind::count
Aggregate sum(const std::string& column);    ///< see Aggregate::Kind::sum
Aggregate min(const std::string& column);    ///< see Aggregate::Kind::min
Aggregate max(const std::string& column);    ///< see Aggregate::Kind::max
Aggregate mean(const std::string& column);   ///< see Aggregate::Kind::mean
Aggregate std(const std::string& column);    ///< see Aggregate::Kind::std
/// "mean(column)" and the like.
std::string to_string(const Aggregate& aggregate);

/// How split cuts.
struct SplitOptions {
  bool equal = false;  ///< all parts have as many rows, and up to n - 1 at the end belong to none
};

/// How write_parquet writes.
struct WriteParquetOptions {
  std::int64_t max_rows_per_file = std::int64_t{16} << 20;    ///< above 0
  std::int64_t rows_per_row_group = std::int64_t{128} << 10;  ///< above 0; what readers decode at a time
  std::string compression = "zstd";                           ///< "none", "snappy", "gzip", "zstd" or "lz4"
};

/// What one operator of an execution has done.
struct OperatorStats {
  std::string name = {};     ///< "read_parquet", "map_batches(Predictor)"
  std::int64_t tasks = 0;    ///< pieces that it was done in
  std::int64_t rows = 0;     ///< that it gave
  std::int64_t bytes = 0;    ///< that it gave
  double busy_s = 0;         ///< its threads together, without waiting for rows or for room
  std::int64_t workers = 0;  ///< threads or processes
};
/// What an execution has done.
struct ExecutionStats {
  std::vector<OperatorStats> operators = {};  ///< from the files on
  double wall_s = 0;                          ///< from its beginning to its end
  std::int64_t peak_bytes = 0;                ///< most that was held at a time; see ExecutionOptions
  std::int64_t memory_limit_bytes = 0;        ///< what it should have been at most
};
/// A table, for people.
std::string to_string(const ExecutionStats& stats);

namespace detail {
class Plan;
class PlanAccess;
}  // namespace detail

/// See the file. A value: copies are cheap, and every function that changes something returns another Dataset.
///
/// What executes (count, take, aggregates, iter_batches, ...) throws
///   - InvalidArgument for what does not fit: a column that is not there, a batch size without rows, more workers than
///     there can be resources for; before anything has run where that can be known by then;
///   - NotFound where a file or folder is not there any more;
///   - StorageError, with file and row group, where one cannot be read, is cut short, or has columns that do not go
///     together with those of the dataset's other files (see SchemaMismatch);
///   - DatasetError, with the name of the function and its error, where a function or a constructor has thrown or its
///     worker has died;
///   - EngineError where workers cannot be started.
///
/// All may be called in any thread, and several at a time; but only one execution at a time has worker processes.
class Dataset {
 public:
  /// Of no rows and no columns.
  Dataset();
  /// A dataset that was stored. Throws InvalidArgument where the value is none, or of a newer version of Cadre, and for
  /// functions that this program does not have.
  explicit Dataset(const Value& stored);
  /// The plan as a value that a Config can carry to workers: Config{{"train", dataset}}. Paths are absolute. Rows that
  /// this process has in memory (from_arrow, from_tensors, materialize) are put into the object store, and stay there
  /// as long as a Dataset with them is in this process.
  operator Value() const;

  // ---- Other datasets

  /// What a function makes of each batch. It may return more rows than it got, or fewer, or other columns; all batches
  /// that it returns have the same columns. It is called once for each batch, in the order of the rows with one worker.
  /// Throws InvalidArgument for bad options.
  Dataset map_batches(const BatchFunction& function, const MapBatchesOptions& options = {}) const;
  /// The same with an object of a class in each worker.
  Dataset map_batches(const Actor& actor, const MapBatchesOptions& options = {}) const;
  /// \cond mistakes, which do not compile
  template <class WRITE_MapBatchesOptions_BEFORE_THE_BRACES_AND_THE_COMPILER_NAMES_THE_FIELD = void>
  Dataset map_batches(const BatchFunction& function, ...) const
      CADRE_DELETED("write MapBatchesOptions before the braces, and the compiler names the field");
  template <class F>
    requires(!std::convertible_to<F, BatchFunction> && !std::convertible_to<F, Actor>)
  CADRE_MISTAKE("map_batches takes no lambda or function itself but its name: write data::function<f>()")
  Dataset map_batches(F&& function, const MapBatchesOptions& options = {}) const;
  template <class F>
    requires(!std::convertible_to<F, RowFunction>)
  CADRE_MISTAKE("map takes no lambda or function itself but its name: write data::function<f>(), of Row f(const Row&)")
  Dataset map(F&& function, const MapOptions& options = {}) const;
  template <class F>
    requires(!std::convertible_to<F, RowPredicate> && !std::convertible_to<F, Expression>)
  CADRE_MISTAKE(
      "filter takes no lambda or function itself but its name: write data::function<f>(), of bool f(const Row&)")
  Dataset filter(F&& function, const MapOptions& options = {}) const;
  /// \endcond
  /// What a function makes of each row. Batches are much faster.
  Dataset map(const RowFunction& function, const MapOptions& options = {}) const;
  /// The rows for which a function says true. Batches, and conditions, are much faster.
  Dataset filter(const RowPredicate& predicate, const MapOptions& options = {}) const;
  /// The rows that meet a condition. Right behind a read it is part of that: row groups whose statistics say that no
  /// row meets it are not read, and of Parquet files in folders whose names say it not even the metadata.
  Dataset filter(const Expression& condition) const;
  /// These columns, in this order. Right behind a read only these are read.
  Dataset select_columns(const std::vector<std::string>& columns) const;
  /// The first `count` rows, 0 or more. What is behind them is not read.
  Dataset limit(std::int64_t count) const;
  /// All but the first `count` rows, 0 or more.
  Dataset skip(std::int64_t count) const;
  /// This one's rows, then those of the others, which have the same columns.
  Dataset concat(const std::vector<Dataset>& others) const;
  /// All rows in random order, which depends on nothing but the seed. The rows are held in memory, or on disk where
  /// they are more than half the memory limit.
  Dataset random_shuffle(std::uint64_t seed) const;
  /// n parts, one behind the other, 1 or more; the first ones have a row more where it does not come out even. Counts
  /// the rows.
  std::vector<Dataset> split(std::int64_t n, const SplitOptions& options = {}) const;
  /// All rows in memory, so that nothing is run again. That they fit is the caller's business.
  Dataset materialize() const;

  /// A name for messages, statistics and bars; datasets made from this one afterwards have it too. Returns this one.
  Dataset& set_name(std::string name);
  /// Empty: none.
  const std::string& name() const;
  /// The same with other options.
  Dataset with_options(const ExecutionOptions& options) const;
  /// Those it is executed with.
  const ExecutionOptions& options() const;

  // ---- What it is

  /// The columns. Reads no more than it must: of Parquet the metadata, of functions what they make of the first batch.
  Schema schema() const;
  /// Their names.
  std::vector<std::string> columns() const { return schema().names(); }
  /// The number of rows. Of Parquet files it is in their metadata; text files are read for it, and behind functions and
  /// conditions everything runs.
  std::int64_t count() const;
  /// The same.
  std::int64_t size() const { return count(); }
  /// Bytes of all rows in memory. Everything runs.
  std::int64_t size_bytes() const;

  /// The first rows, at most `count`, 0 or more.
  std::vector<Row> take(std::int64_t count = 20) const;
  /// All rows. Throws InvalidArgument where they are more than `most`.
  std::vector<Row> take_all(std::optional<std::int64_t> most = {}) const;
  /// The first rows as one batch. Throws InvalidArgument where there are none.
  Batch take_batch(std::int64_t count = 20) const;
  /// Writes the first rows to stdout, each as JSON in a line.
  void show(std::int64_t count = 20) const;

  /// Several aggregates in one execution: a row with "mean(a)", "max(b)" and so on, null where there are no values.
  Row aggregate(const std::vector<Aggregate>& aggregates, const AggregateOptions& options = {}) const;
  /// See Aggregate::Kind. These five throw InvalidArgument where the column has no values, and with
  /// AggregateOptions::ignore_nulls off where it has nulls.
  double mean(const std::string& column, const AggregateOptions& options = {}) const;
  Value sum(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  Value min(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  Value max(const std::string& column, const AggregateOptions& options = {}) const;   ///< see mean
  double std(const std::string& column, const AggregateOptions& options = {}) const;  ///< see mean

  /// Batches, in the order of the rows, made ahead in threads. Each loop over what is returned is an execution.
  Batches iter_batches(const IterBatchesOptions& options = {}) const;
  /// This rank's share of the rows, for training or for an evaluation.
  Shard shard(const ShardOptions& options) const;

  /// Writes Parquet files "part_000000.parquet", ... into a folder, which is made where it is not there, or below the
  /// URI of a storage ("s3://bucket/folder"), and returns their paths or URIs. Nobody sees a file before it is whole;
  /// in a folder all of them appear at the end, in a storage one after the other. A dataset without rows becomes one
  /// file without rows; if its columns come from a function, which was never called, they are not known and there is no
  /// file. Throws InvalidArgument where the folder has Parquet files already, StorageError with the file (OutOfSpace on
  /// a full disk) where it cannot be written; what has been written by then is removed. What writes has, beside
  /// ExecutionOptions::memory_limit_bytes, one compressed row group, and on its way to a storage at most 32 MiB.
  std::vector<std::filesystem::path> write_parquet(const std::filesystem::path& folder,
                                                   const WriteParquetOptions& options = {}) const;

  /// Of the latest execution of this Dataset or a copy of it that has ended; empty where there was none.
  std::optional<ExecutionStats> stats() const;

 private:
  friend class detail::PlanAccess;
  struct State;
  explicit Dataset(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // never null; shared by copies, and not changed but for the statistics
};

/// A function of the program or its class has thrown, or its worker process has died.
class DatasetError : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// Parquet files: paths of files, of folders (all "*.parquet" in them, however deep, in the order of their paths; names
/// that begin with '.' or '_' are left out), patterns as the shell has them ("data/train-*.parquet"), or URIs of a
/// storage ("s3://bucket/folder", also gs, abfs and file). A relative path is made absolute. Their row groups are what
/// is read at a time and what shards are made of. The metadata of many files is read side by side. Throws NotFound
/// where there is no such file or folder, or no file in it, and InvalidArgument for bad options.
Dataset read_parquet(const std::vector<std::string>& paths, const ParquetOptions& options = {});
/// The same with one path.
Dataset read_parquet(const std::string& path, const ParquetOptions& options = {});
/// CSV files, of folders "*.csv", or with ".gz", ".zst", ".bz2" or ".lz4" behind it, which is how they are
/// decompressed; see read_parquet for paths. The types are those that the first megabyte of the first file looks like,
/// of a column without values there that of the next files; empty values are nulls. How many rows there are is known
/// when all is read: count(), split() and shards read them for that.
Dataset read_csv(const std::vector<std::string>& paths, const CsvOptions& options = {});
/// The same with one path.
Dataset read_csv(const std::string& path, const CsvOptions& options = {});
/// Files of JSON objects, one a line; of folders "*.json", "*.jsonl" and "*.ndjson"; see read_csv for the rest. An
/// object may lack entries, which are null; the types and names are those of the first megabyte of the first file.
Dataset read_json(const std::vector<std::string>& paths, const JsonOptions& options = {});
/// The same with one path.
Dataset read_json(const std::string& path, const JsonOptions& options = {});
/// A table in memory, which is not copied.
Dataset from_arrow(const std::shared_ptr<::arrow::Table>& table);
/// Batches in memory, which are not copied. They have the same columns, or it throws InvalidArgument.
Dataset from_batches(const std::vector<Batch>& batches);
/// Rows in memory; see to_batch.
Dataset from_rows(const std::vector<Row>& rows);
/// The integers from 0 to count - 1 as the column "id"; `count` is 0 or more.
Dataset range(std::int64_t count);

}  // namespace cadre::data
