#include "tune/loggers/trial_files.h"

#include <algorithm>

#include "base/directory.h"
#include "base/json.h"
#include "tune/experiment_directory.h"
#include "tune/flat_row.h"
#include "tune/result_keys.h"

namespace cadre::tune {
namespace {

// The row that files show: what was reported, and what was made of it.
Dict row_of(const LogResult& result) {
  Dict row = result.metrics.dict();
  row.emplace_back(result_key::checkpoint_dir_name,
                   result.checkpoint_dir_name.empty() ? Value() : Value(result.checkpoint_dir_name));
  std::erase_if(row, [](const auto& entry) { return entry.first == result_key::done; });
  row.emplace_back(result_key::done, result.done);
  return row;
}

}  // namespace

TrialFiles::TrialFiles(const std::filesystem::path& directory, Loggers loggers)
    : directory_(directory),
      loggers_(loggers),
      json_(directory / kResultFile),
      csv_(directory / kProgressFile),
      tensorboard_(directory),
      errors_(directory / kErrorFile) {}

bool TrialFiles::resume(const Stamp& stamp) {
  if (!json_.resume(stamp.json) || !csv_.resume(stamp.csv) || !tensorboard_.resume(stamp.tensorboard) ||
      !errors_.resume(stamp.errors))
    return false;
  json_is_new_ = stamp.json.size == 0;
  return true;
}

void TrialFiles::resume() {
  json_is_new_ = false;
  json_.resume();
  csv_.resume({});
  tensorboard_.resume();
  errors_.resume();
}

Dict TrialFiles::sizes(const std::filesystem::path& directory) {
  Dict sizes;
  if (!std::filesystem::is_directory(directory)) return sizes;  // it was never run
  for (const std::string& name : base::list_directory(directory)) {
    if (name == kResultFile || name == kProgressFile || name.starts_with(TensorBoardFile::kNamePrefix))
      sizes.emplace_back(name, std::filesystem::file_size(directory / name));
  }
  return sizes;
}

bool TrialFiles::have_sizes(const std::filesystem::path& directory, const Dict& sizes) {
  return std::ranges::all_of(sizes, [&](const auto& entry) {
    std::error_code missing;
    return std::filesystem::file_size(directory / entry.first, missing) == entry.second.template get<std::uintmax_t>();
  });
}

std::size_t TrialFiles::add(const LogResult& result, double time) {
  const std::size_t before = waiting_bytes();
  Dict row = row_of(result);
  const Dict flat = flatten(row);
  if (loggers_.csv) csv_.add(flat);
  if (loggers_.tensorboard) tensorboard_.add(flat, time);
  if (!loggers_.json) return waiting_bytes() - before;
  row.emplace_back("config", result.config.value());
  base::append_json(pending_json_, row);
  pending_json_ += '\n';
  return waiting_bytes() - before;
}

void TrialFiles::flush() {
  csv_.flush();
  tensorboard_.flush();
  if (pending_json_.empty()) return;
  if (json_is_new_) json_.replace("");
  json_is_new_ = false;
  json_.append(pending_json_);
  pending_json_.clear();
}

void TrialFiles::write_params(const Config& config) {
  base::replace_file(directory_ / kParamsFile, base::to_pretty_json(config.dict()));
}

}  // namespace cadre::tune
