// A trial or training run as a run in MLflow's file store ("mlruns"): parameters, metrics by step, tags, status.
// docs/formats.md describes the files. Source: mlflow.store.tracking.file_store of MLflow 3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/value.h"

namespace cadre::loggers {

// Folder of the store in the directory of an experiment or a training run.
inline constexpr const char* kMlflowFolder = "mlruns";

// MLflow's numbers for the state of a run.
enum class MlflowStatus { running = 1, scheduled = 2, finished = 3, failed = 4, killed = 5 };

// The place of a run in a store, and its names there.
struct MlflowPlace {
  std::filesystem::path store = {};        // directory; made if it is missing
  std::string experiment = {};             // name of the experiment
  std::string location = {};               // of the experiment: absolute path of its directory, or URI
  std::string run = {};                    // name of the run, unique in the experiment
  std::string run_location = {};           // the same of the trial
  std::vector<std::string> schedule = {};  // paths of parameters that change on the way: logged as metrics, too

  // The ids follow from the names, so that the same run is found again.
  std::string experiment_id() const;
  std::string run_id() const;
};

// Returns a name of a metric, parameter or tag that MLflow accepts: `name` if it does itself, else a similar one that
// ends with a hash of `name`.
std::string mlflow_name(std::string_view name);

// Makes the store and the experiment's folder in it, or completes them. Throws InvalidArgument if the store has another
// experiment of that name, which was in another directory; StorageError if files cannot be written.
void make_mlflow_experiment(const MlflowPlace& place);

class MlflowRun {
 public:
  // Sizes in bytes of the files of metrics, by the metric's name in the results.
  struct File {
    std::string name = {};  // of the metric in MLflow
    std::int64_t size = 0;
  };
  struct Stamp {
    std::map<std::string, File> metrics = {};
    bool is_set() const { return !metrics.empty(); }
  };

  // The run's folder is written with its first result. It replaces what is there.
  explicit MlflowRun(MlflowPlace place) : place_(std::move(place)) {}
  Stamp stamp() const { return {files_}; }
  // Continues the files, and cuts off what came later. Returns false if one of them is shorter or missing.
  bool resume(const Stamp& stamp);
  // Continues the files of a run that had ended, as they are.
  void resume();

  // Replaces the parameters.
  void set_config(const Config& config);
  // Adds a result, flattened, that was reported at `time` (seconds since 1970) with a config.
  void add(const Dict& flat_row, const Config& config, double time);
  // Adds values at the step of another result that was added before.
  void add_values(const Dict& flat_values, const Dict& flat_row, double time);
  void set_tag(std::string_view name, std::string_view text);
  // Sets the status at `time`, which is that of the end if the run is over.
  void set_status(MlflowStatus status, double time);
  // Writes what was added. After a StorageError it can be called again, and nothing is written twice.
  void flush();
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  // Names that MLflow does not accept, with the names that they have there.
  const std::map<std::string, std::string>& renamed() const { return renamed_; }

 private:
  std::filesystem::path folder() const;
  void begin(double time);
  void make_folders();
  void append(const std::string& metric, double value, const std::string& step, double time);
  File& file_of(const std::string& metric);
  std::string name_beside(const std::string& metric, const std::set<std::string>& others);
  void write_parameters();
  void write_metric(File& file, std::string& lines) const;
  void write_meta() const;

  MlflowPlace place_;
  std::optional<double> started_ = {};  // seconds since 1970; empty: nothing to write yet
  std::optional<double> ended_ = {};
  MlflowStatus status_ = MlflowStatus::running;
  bool is_new_ = true;                               // the folder is not written yet
  bool meta_changed_ = false;                        // meta.yaml is to be written
  std::optional<Config> config_ = {};                // parameters to write
  std::map<std::string, std::string> tags_ = {};     // to write
  std::map<std::string, File> files_ = {};           // by the metric's name in the results
  std::map<std::string, std::int64_t> found_ = {};   // sizes of files that were there, by the metric's name in MLflow
  std::set<std::string> names_ = {};                 // of all these files
  std::map<std::string, std::string> pending_ = {};  // lines that were not written yet, by the same
  std::map<std::string, std::string> renamed_ = {};
  std::size_t told_of_renamed_ = 0;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace cadre::loggers
