#include "loggers/mlflow_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

#include "base/checksum.h"
#include "base/cut_text.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/host_object.h"
#include "base/json.h"
#include "base/percent_encoding.h"
#include "base/system_error.h"
#include "base/utf8.h"
#include "cadre/error.h"
#include "loggers/flat_row.h"
#include "loggers/result_keys.h"

namespace cadre::loggers {
namespace fs = std::filesystem;

namespace {

// MLflow's limits (mlflow.utils.validation): bytes of a name, characters of a parameter and of a tag.
constexpr std::size_t kLongestName = 250;
constexpr std::size_t kLongestParameter = 6000;
constexpr std::size_t kLongestTag = 5000;  // of older versions; 8000 since MLflow 2.13
constexpr const char* kMetaFile = "meta.yaml";
constexpr std::string_view kStartKey = "start_time: ";

std::string hash_text(std::string_view text) { return fmt::format("{:016x}", base::checksum_of(text)); }

// Returns true for control characters, line breaks and others that YAML 1.1 does not take as they are.
bool is_escaped_in_yaml(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 || code == 0xfeff ||
         code == 0xfffe || code == 0xffff;
}

// Returns text in double quotes, as YAML has it.
std::string yaml_text(std::string_view text) {
  const std::string well_formed = base::to_utf8(text);
  std::string out = "\"";
  for (std::string_view rest = well_formed; !rest.empty();) {
    const std::string_view sequence = rest.substr(0, base::utf8_sequence_length(rest));
    const std::uint32_t code = base::utf8_code_point(sequence);
    if (sequence == "\"" || sequence == "\\") {
      out += '\\';
      out += sequence;
    } else if (is_escaped_in_yaml(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += sequence;
    }
    rest.remove_prefix(sequence.size());
  }
  return out + '"';
}

// Returns the beginning of a text that has at most `most` bytes, as UTF-8.
std::string beginning_of(std::string_view text, std::size_t most) {
  return std::string(base::first_bytes(base::to_utf8(text), most));
}

std::string uri_of(const fs::path& path) {
  return "file://" + base::percent_encoded(fs::absolute(path).lexically_normal().string(), "/");
}

std::int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-. :/").find(c) != std::string_view::npos;
}

// Returns true if a name with slashes is a path below a folder, and the shortest one.
bool is_inner_path(std::string_view name) {
  if (name.starts_with("..")) return false;  // also "..a", which MLflow refuses
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

// Returns a name that looks like `name`, has no slashes, and is the only one of its kind.
std::string replaced_name(std::string_view name) {
  constexpr std::size_t kept = 200;
  std::string safe(name.substr(0, kept));
  std::ranges::replace_if(safe, [](char c) { return !is_plain(c) || c == '/'; }, '_');
  if (safe.starts_with('.')) safe.front() = '_';
  return safe + '-' + hash_text(name).substr(0, 8);
}

bool is_metric(std::string_view key) {
  constexpr std::array<std::string_view, 8> skipped{
      result_key::pid, result_key::timestamp, result_key::iterations_since_restore, "config",
      "done",          "should_checkpoint",   result_key::training_iteration,       result_key::time_since_restore};
  return std::ranges::find(skipped, key) == skipped.end() && !key.starts_with("config/");
}

std::optional<double> metric_of(const Value& value) {
  if (value.is_bool()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// Returns a number as Python reads it, and reads it as the same.
std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// Returns a value as Python's str() shows it.
std::string parameter_text(const Value& value) {
  if (value.is_string()) return beginning_of(value.get<std::string>(), kLongestParameter);
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get<bool>() ? "True" : "False";
  return beginning_of(to_json(value), kLongestParameter);
}

std::string step_text(const Dict& flat_row) {
  const Value* const step = find_entry(flat_row, result_key::training_iteration);
  return step != nullptr && step->is_integer() ? std::to_string(step->get<std::int64_t>()) : "0";
}

void write_entry(const fs::path& file, std::string_view text) {
  base::make_directories(file.parent_path());
  base::replace_file(file, text);
}

// Returns the names of all files below a folder, relative to it.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::is_directory(folder)) return names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder));
  }
  return names;
}

// Returns names with the ones that they replace as dictionaries in JSON, each no longer than a tag may be. An original
// that is too long for that is cut.
std::vector<std::string> renamed_texts(const std::map<std::string, std::string>& renamed) {
  const auto size_of = [](const std::string& safe, const std::string& name) {
    return base::to_json(Dict{{safe, name}}).size();  // two entries of one dictionary have as many bytes in all
  };
  std::vector<std::string> texts;
  Dict names;
  std::size_t size = 0;
  for (const auto& [name, safe] : renamed) {
    std::string original = name;
    while (size_of(safe, original) > kLongestTag) original = beginning_of(original, original.size() / 2);
    const std::size_t added = size_of(safe, original);
    if (size + added > kLongestTag) {
      texts.push_back(base::to_json(std::exchange(names, {})));
      size = 0;
    }
    names.emplace_back(safe, std::move(original));
    size += added;
  }
  texts.push_back(base::to_json(names));
  return texts;
}

// Returns true if one of the names is below a folder that is called `name`.
bool is_folder_of(const std::set<std::string>& names, const std::string& name) {
  const std::string folder = name + "/";
  const auto first = names.lower_bound(folder);
  return first != names.end() && first->starts_with(folder);
}

// Returns true if `name` is below a folder that is called as one of the names.
bool is_below_one_of(const std::set<std::string>& names, const std::string& name) {
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    if (names.contains(name.substr(0, end))) return true;
  }
  return false;
}

std::optional<std::string> entry_of(const fs::path& file) {
  return fs::is_regular_file(file) ? std::optional(base::read_file(file)) : std::nullopt;
}

}  // namespace

std::string MlflowPlace::experiment_id() const {
  // As MLflow makes them: 18 digits.
  constexpr std::uint64_t least = 100'000'000'000'000'000;
  return std::to_string(least + base::checksum_of("experiment " + experiment) % (9 * least));
}

std::string MlflowPlace::run_id() const {
  const std::string both = experiment_id() + " " + run;
  return hash_text(both) + hash_text("second half " + both);
}

std::string mlflow_name(std::string_view name) {
  const bool is_accepted = name.size() <= kLongestName && std::ranges::all_of(name, is_plain) && is_inner_path(name);
  return is_accepted ? std::string(name) : replaced_name(name);
}

void make_mlflow_experiment(const MlflowPlace& place) {
  const fs::path folder = place.store / place.experiment_id();
  const fs::path path_tag = folder / "tags" / "cadre.path";
  const std::optional<std::string> other = entry_of(path_tag);
  if (other && *other != place.location && fs::exists(*other))
    throw InvalidArgument(fmt::format("{} has another experiment {}, that of {}: choose another directory for {}",
                                      place.store.string(), place.experiment, *other, place.location));
  base::make_directories(folder);
  if (fs::exists(folder / kMetaFile) && other == place.location) return;
  const std::int64_t now = milliseconds(static_cast<double>(std::time(nullptr)));
  write_entry(path_tag, place.location);
  base::replace_file(
      folder / kMetaFile,
      fmt::format("artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\nlast_update_time: {}\n"
                  "lifecycle_stage: active\nname: {}\n",
                  yaml_text(uri_of(folder)), now, place.experiment_id(), now, yaml_text(place.experiment)));
}

fs::path MlflowRun::folder() const { return place_.store / place_.experiment_id() / place_.run_id(); }

bool MlflowRun::resume(const Stamp& stamp) {
  for (const auto& [metric, file] : stamp.metrics) {
    std::error_code error;
    const auto size = fs::file_size(folder() / "metrics" / file.name, error);
    if (error || size < static_cast<std::uintmax_t>(file.size)) return false;
  }
  if (!stamp.is_set()) return true;
  resume();
  if (is_new_) return false;
  files_ = stamp.metrics;
  found_.clear();
  names_.clear();
  for (const auto& [metric, file] : files_) names_.insert(file.name);
  const fs::path metrics = folder() / "metrics";
  for (const std::string& name : files_below(metrics)) {
    if (!names_.contains(name)) base::remove_tree(metrics / name);
  }
  for (const auto& [metric, file] : files_) {
    if (::truncate((metrics / file.name).c_str(), file.size) != 0)
      base::throw_storage_error("cut", metrics / file.name);
  }
  return true;
}

void MlflowRun::resume() {
  const std::optional<std::string> meta = entry_of(folder() / kMetaFile);
  const std::size_t start = meta ? meta->find(kStartKey) : std::string::npos;
  if (start == std::string::npos) return;
  started_ = std::strtod(meta->c_str() + start + kStartKey.size(), nullptr) / 1000;
  is_new_ = false;
  meta_changed_ = true;  // it runs again
  for (const std::string& name : files_below(folder() / "metrics")) {
    found_[name] = static_cast<std::int64_t>(fs::file_size(folder() / "metrics" / name));
    names_.insert(name);
  }
}

void MlflowRun::begin(double time) {
  started_ = time;
  meta_changed_ = true;
}

void MlflowRun::set_config(const Config& config) { config_ = Config(base::without_host_objects(config.value())); }

void MlflowRun::add(const Dict& flat_row, const Config& config, double time) {
  if (!started_) {
    const Value* const before = find_entry(flat_row, result_key::time_total_s);
    begin(before != nullptr && before->is_number() ? time - before->get<double>() : time);
  }
  add_values(flat_row, flat_row, time);
  for (const std::string& path : place_.schedule) {
    const Value* const value = config.find(path);
    if (value == nullptr) continue;
    if (const std::optional<double> number = metric_of(base::without_host_objects(*value)))
      append("config/" + path, *number, step_text(flat_row), time);
  }
}

void MlflowRun::add_values(const Dict& flat_values, const Dict& flat_row, double time) {
  if (!started_) begin(time);
  const std::string step = step_text(flat_row);
  for (const auto& [key, value] : flat_values) {
    if (!is_metric(key)) continue;
    if (const std::optional<double> number = metric_of(value)) append(key, *number, step, time);
  }
}

void MlflowRun::append(const std::string& metric, double value, const std::string& step, double time) {
  const std::string line = fmt::format("{} {} {}\n", milliseconds(time), number_text(value), step);
  pending_[metric] += line;
  waiting_bytes_ += line.size();
}

void MlflowRun::set_tag(std::string_view name, std::string_view text) {
  tags_[mlflow_name(name)] = beginning_of(text, kLongestTag);
}

void MlflowRun::set_status(MlflowStatus status, double time) {
  if (!started_) begin(time);
  status_ = status;
  if (status != MlflowStatus::running && status != MlflowStatus::scheduled) ended_ = time;
  meta_changed_ = true;
}

// Returns a name that MLflow accepts. One that is that of a folder of other names, or would need a folder where another
// name is a file, is replaced.
std::string MlflowRun::name_beside(const std::string& metric, const std::set<std::string>& others) {
  std::string name = mlflow_name(metric);
  if (is_folder_of(others, name) || is_below_one_of(others, name)) name = replaced_name(metric);
  if (name != metric) renamed_[metric] = name;
  return name;
}

MlflowRun::File& MlflowRun::file_of(const std::string& metric) {
  if (const auto known = files_.find(metric); known != files_.end()) return known->second;
  File file{.name = name_beside(metric, names_)};
  names_.insert(file.name);
  if (const auto found = found_.find(file.name); found != found_.end()) file.size = found->second;
  return files_[metric] = std::move(file);
}

// Replaces the parameters, of which some may be gone.
void MlflowRun::write_parameters() {
  std::set<std::string> names;
  for (const auto& [path, value] : flatten(config_->dict())) {
    const std::string name = name_beside(path, names);
    names.insert(name);
    write_entry(folder() / "params" / name, parameter_text(value));
  }
  for (const std::string& name : files_below(folder() / "params")) {
    if (!names.contains(name)) base::remove_tree(folder() / "params" / name);
  }
  config_.reset();
}

// Opened for each piece: a run may have many metrics, and an experiment many runs.
void MlflowRun::write_metric(File& file, std::string& lines) const {
  const fs::path path = folder() / "metrics" / file.name;
  if (file.size == 0) base::make_directories(path.parent_path());
  base::FileDescriptor opened = base::open_own_file(path, O_WRONLY | O_CREAT | O_APPEND);
  // A failed write may have left a part of its bytes.
  if (::ftruncate(opened.get(), file.size) != 0) base::throw_storage_error("write", path);
  base::write_all(opened.get(), lines, path);
  base::close_written(opened, path);
  file.size += static_cast<std::int64_t>(lines.size());
  lines.clear();
}

void MlflowRun::write_meta() const {
  base::replace_file(
      folder() / kMetaFile,
      fmt::format("artifact_uri: {}\ndeleted_time: null\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\n"
                  "lifecycle_stage: active\nrun_id: {}\nrun_name: {}\nsource_name: ''\nsource_type: 4\n"
                  "source_version: ''\n{}{}\nstatus: {}\ntags: []\nuser_id: cadre\n",
                  yaml_text(uri_of(folder() / "artifacts")), ended_ ? std::to_string(milliseconds(*ended_)) : "null",
                  place_.experiment_id(), place_.run_id(), yaml_text(place_.run), kStartKey, milliseconds(*started_),
                  static_cast<int>(status_)));
}

void MlflowRun::make_folders() {
  make_mlflow_experiment(place_);
  base::remove_tree(folder());
  for (const char* const name : {"metrics", "params", "tags", "artifacts"}) base::make_directories(folder() / name);
  set_tag("mlflow.runName", place_.run);
  set_tag("cadre.path", place_.run_location);
}

void MlflowRun::flush() {
  if (!started_) return;
  if (is_new_) {
    make_folders();
    is_new_ = false;
  }
  for (auto& [metric, lines] : pending_) {
    if (!lines.empty()) write_metric(file_of(metric), lines);
  }
  waiting_bytes_ = 0;
  if (config_) write_parameters();
  if (renamed_.size() > told_of_renamed_) {
    const std::vector<std::string> texts = renamed_texts(renamed_);
    for (std::size_t i = 0; i < texts.size(); ++i)
      set_tag(i == 0 ? "cadre.renamed" : fmt::format("cadre.renamed.{}", i + 1), texts[i]);
    told_of_renamed_ = renamed_.size();
  }
  for (const auto& [name, text] : tags_) write_entry(folder() / "tags" / name, text);
  tags_.clear();
  if (meta_changed_) write_meta();
  meta_changed_ = false;
}

}  // namespace cadre::loggers
