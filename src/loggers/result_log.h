// The result files of a trial or a training run, in its directory: params.json, result.json, progress.csv, error.txt
// and TensorBoard's; and its run in MLflow's file store. They are derived from the store and written after it.
// docs/formats.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "cadre/checkpoint_config.h"
#include "cadre/value.h"
#include "loggers/amendments.h"
#include "loggers/error_file.h"
#include "loggers/mlflow_run.h"
#include "loggers/progress_csv.h"
#include "loggers/tensorboard_file.h"

namespace cadre::loggers {

inline constexpr const char* kResultFile = "result.json";
inline constexpr const char* kProgressFile = "progress.csv";
inline constexpr const char* kParamsFile = "params.json";
inline constexpr const char* kErrorFile = "error.txt";

class ResultLog {
 public:
  static constexpr std::int64_t kSmallFile = std::int64_t{1} << 20;  // in bytes
  static constexpr std::int64_t kGrowth = 8;                         // an eighth

  // Existing files in the directory, which must exist, are replaced by the first write to each.
  // `mlflow`: the place in MLflow's file store, if the loggers write one.
  explicit ResultLog(const std::filesystem::path& directory, Loggers loggers = {}, MlflowPlace mlflow = {});
  // Sizes and checksums of the files, with which a later controller continues them.
  struct Stamp {
    base::AppendFile::Stamp json = {};
    base::AppendFile::Stamp csv = {};
    TensorBoardFile::Stamp tensorboard = {};
    base::AppendFile::Stamp errors = {};
    MlflowRun::Stamp mlflow = {};
  };
  Stamp stamp() const { return {json_.stamp(), csv_.stamp(), tensorboard_.stamp(), errors_.stamp(), mlflow_.stamp()}; }
  // Continues the files in the directory. Returns false if one does not match its stamp; files before it may have been
  // cut to their stamps then.
  bool resume(const Stamp& stamp);
  // Continues the files of a trial that had ended and runs again, as they are. Only this process may have written them.
  void resume();

  // sizes() returns the sizes in bytes of the result files in the directory of an ended trial, by name; have_sizes()
  // returns true if they are the same.
  static Dict sizes(const std::filesystem::path& directory);
  static bool have_sizes(const std::filesystem::path& directory, const Dict& sizes);

  // Adds a result: all values of its row and the config that it was reported with; `time` is when, in seconds since
  // 1970. Returns the number of bytes that it added to those waiting for flush().
  std::size_t add(Dict row, const Config& config, double time);
  // Adds values to a result that this object was given, with its number from 0: to TensorBoard's file at the step of
  // `row`, to the other files in its row. Files beyond kSmallFile, which are written anew for that, may lack them until
  // complete(), or until they have grown by a kGrowth.
  void amend(std::size_t number, Dict values, const Dict& row, double time);
  // Writes what files lack of what was added. After a StorageError it can be called again.
  void complete();
  // See TensorBoardFile::end and MlflowRun::set_status.
  void end(tensorboard::Session session, const Dict& last_row);
  // Ends a training run's run in MLflow's store, which goes on if more is added.
  void end_run(bool success, double time);
  // Writes the waiting results. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  std::size_t waiting_bytes() const {
    return pending_json_.size() + csv_.waiting_bytes() + tensorboard_.waiting_bytes() + mlflow_.waiting_bytes();
  }
  // lacks_columns() returns true if progress.csv lacks metrics, because there are too many; columns_warning() returns
  // the warning about the file in a directory.
  bool lacks_columns() const { return csv_.lacks_columns(); }
  static std::string columns_warning(const std::string& directory);

  // Writes the config of the next attempt.
  void write_params(const Config& config);
  void add_error(std::int64_t attempt, const std::string& message);

 private:
  // Values that rows of a file still lack.
  struct Lacking {
    Amendments amendments = {};
    std::int64_t size = 0;  // of the file when it was written anew last

    void add(std::size_t number, const Dict& values);
    bool is_due(const base::AppendFile::Stamp& file) const;
  };

  void amend_csv();
  void amend_json();

  std::filesystem::path directory_;
  Loggers loggers_;
  base::AppendFile json_;
  std::string pending_json_;
  bool json_is_new_ = true;
  ProgressCsv csv_;
  Lacking json_lacks_;
  Lacking csv_lacks_;
  TensorBoardFile tensorboard_;
  ErrorFile errors_;
  MlflowRun mlflow_;
};

}  // namespace cadre::loggers
