#include "cli/tune_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/file.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cli/domain_text.h"
#include "cli/near_names.h"
#include "cli/toml.h"
#include "tune/description.h"

namespace cadre::cli {
namespace fs = std::filesystem;
namespace {

// Calls `read` for an entry; errors name its line.
void reading_entry(const TomlDocument& document, const std::string& path, const std::function<void()>& read) {
  try {
    read();
  } catch (const InvalidArgument& error) {
    const std::string what = error.what();
    // The error begins with the path within the entry: "max_t: ...".
    const std::size_t colon = what.find(": ");
    const std::string inner = colon == what.npos ? "" : what.substr(0, colon);
    throw InvalidArgument(fmt::format("{}: {}", document.place(path + "/" + inner),
                                      what.starts_with(path) ? what : path + (what.empty() ? "" : ": ") + what));
  }
}

template <class T>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const std::string_view name : detail::member_names<T>()) names.emplace_back(name);
  return names;
}

bool has_name(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// ---- The search space

// Text of the form of a domain is one, and so is a table { choice = [...] }, whose options may be domains and spaces.
// Another table is a nested space, everything else a constant.
tune::SpaceEntry to_space_entry(const std::string& key, const Value& value);

tune::SpaceEntry to_space_entry(const std::string& key, const std::string& text) {
  return parse_entry(key, text, [&key](const std::string& arguments) {
    return TomlDocument("arguments = [" + arguments + "]", "the arguments of \"" + key + "\"")
        .entries()
        .front()
        .second.items();
  });
}

tune::Entries to_entries(const std::string& key, const List& options) {
  tune::Entries entries;
  for (const Value& option : options) entries.push_back(to_space_entry(key, option));
  return entries;
}

tune::Space to_space(const Dict& entries) {
  tune::Space space;
  for (const auto& [key, value] : entries) space.emplace_back(key, to_space_entry(key, value));
  return space;
}

tune::SpaceEntry to_space_entry(const std::string& key, const Value& value) {
  if (value.is_string()) return to_space_entry(key, value.get<std::string>());
  if (!value.is_dict()) return value;
  if (value.dict().size() == 1 && value.dict().front().second.is_list()) {
    const auto& [name, options] = value.dict().front();
    if (name == "choice") return tune::choice(to_entries(key, options.items()));
    if (name == "grid_search") return tune::grid_search(to_entries(key, options.items()));
  }
  return to_space(value.dict());
}

// Returns mutations in their stored form, which has the domains of text in it: schedulers take them so.
Value to_stored_mutations(const Dict& entries) {
  Dict stored;
  for (const auto& [key, value] : entries) {
    if (value.is_dict() && find_entry(value.dict(), "type") == nullptr) {
      stored.emplace_back(key, Dict{{"type", "mutations"}, {"entries", to_stored_mutations(value.dict())}});
    } else if (value.is_list()) {
      stored.emplace_back(key, Dict{{"type", "values"}, {"values", value}});
    } else if (value.is_string()) {
      const tune::Space one{{key, to_space_entry(key, value.get<std::string>())}};
      stored.emplace_back(key, to_stored(one).dict().front().second);
    } else {
      stored.emplace_back(key, value);
    }
  }
  return stored;
}

// Returns options in their stored form: "ASHA" for { type = "ASHA" }, and mutations as above.
Value to_stored_options(const Value& value) {
  if (value.is_string()) return Dict{{"type", value}};
  if (!value.is_dict()) return value;
  Dict stored;
  for (const auto& [key, entry] : value.dict())
    stored.emplace_back(key,
                        key == "hyperparam_mutations" && entry.is_dict() ? to_stored_mutations(entry.dict()) : entry);
  return stored;
}

// ---- Stop criteria

tune::Threshold to_threshold(const std::string& metric, const Value& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_dict() && value.dict().size() == 1) {
    const auto& [name, limit] = value.dict().front();
    if (name == "at_most") return tune::at_most(limit.get<double>());
    if (name == "at_least") return tune::at_least(limit.get<double>());
  }
  throw InvalidArgument(metric + ": write a number, { at_most = 0.1 } or { at_least = 0.9 }");
}

tune::Stop to_stop(const Stored& stored) {
  tune::Stop stop;
  for (const auto& [key, value] : stored.dict()) {
    if (key == "stoppers") {
      from_stored(stop.stoppers, stored.at(key, value));
    } else {
      stop.thresholds.emplace_back(key, to_threshold(key, value));
    }
  }
  return stop;
}

// ---- The file

// Adds what `others` has under other names.
template <class Named>
void add_others(Named& named, const Named& others) {
  for (const auto& other : others) {
    if (std::ranges::find(named, other.first, &Named::value_type::first) == named.end()) named.push_back(other);
  }
}

class Reader {
 public:
  // `present`: a scheduler or searcher without a type has the other options of the one there; nullptr: it needs one.
  explicit Reader(const TomlDocument& document, const tune::TuneConfig* present = nullptr)
      : document_(document), present_(present) {}

  TuneFile read() {
    for (const auto& [key, value] : document_.entries()) take(key, value);
    TuneFile file{.program = program_, .resources = resources_};
    const Value form = Dict{{"tune_config", tune_config_}, {"run_config", run_config_}};
    file.options = tune::to_description(form).options;
    file.options.param_space = space_;
    auto& run = file.options.run_config;
    run.stop = stop_;
    run.name = name_;
    run.storage_path = storage_path_;
    run.if_exists = if_exists_;
    return file;
  }

 private:
  void take(const std::string& key, const Value& value) {
    static const std::vector<std::string> of_program = names_of<tune::Program>();
    static const std::vector<std::string> of_tune = names_of<tune::TuneConfig>();
    static const std::vector<std::string> of_run = names_of<tune::RunConfig>();
    reading_entry(document_, key, [&] {
      const Stored stored = Stored(value);
      if (key == "space") {
        space_ = to_space(stored.dict());
      } else if (key == "resources") {
        from_stored(resources_, stored);
      } else if (key == "stop") {
        stop_ = to_stop(stored);
      } else if (key == "name") {
        from_stored(name_, stored);
      } else if (key == "storage_path") {
        from_stored(storage_path_, stored);
      } else if (key == "if_exists") {
        from_stored(if_exists_, stored);
      } else if (has_name(of_program, key)) {
        const Value one = Dict{{key, value}};
        from_stored(program_, Stored(one));
      } else if (has_name(of_tune, key)) {
        tune_config_.emplace_back(key, key == "scheduler"  ? with_present(value, &tune::TuneConfig::scheduler)
                                       : key == "searcher" ? with_present(value, &tune::TuneConfig::searcher)
                                                           : value);
        try_out("tune_config", tune_config_.back());
      } else if (has_name(of_run, key) && key != "callbacks" && key != "publish_config") {
        run_config_.emplace_back(key, value);
        try_out("run_config", run_config_.back());
      } else {
        refuse(key, of_program, of_tune, of_run);
      }
    });
  }

  template <class Held>
  Value with_present(const Value& value, Held tune::TuneConfig::* member) const {
    const Value given = to_stored_options(value);
    if (present_ == nullptr || !given.is_dict() || find_entry(given.dict(), "type") != nullptr) return given;
    Dict options = given.dict();
    add_others(options, to_stored(present_->*member).dict());
    return options;
  }

  // Reads one entry alone, so that an error has its line.
  static void try_out(const std::string& group, const Dict::value_type& entry) {
    try {
      const Value form = Dict{{group, Dict{entry}}};
      static_cast<void>(tune::to_description(form));
    } catch (const InvalidArgument& error) {
      const std::string what = error.what();
      throw InvalidArgument(what.starts_with(group + "/") ? what.substr(group.size() + 1) : what);
    }
  }

  [[noreturn]] static void refuse(const std::string& key, const std::vector<std::string>& of_program,
                                  const std::vector<std::string>& of_tune, const std::vector<std::string>& of_run) {
    std::vector<std::string> names{"space", "resources"};
    for (const auto* some : {&of_program, &of_tune, &of_run}) names.insert(names.end(), some->begin(), some->end());
    std::erase_if(names, [](const std::string& name) { return name == "callbacks" || name == "publish_config"; });
    const std::vector<std::string> near = near_names(key, names);
    std::ranges::sort(names);
    throw InvalidArgument(near.empty()
                              ? fmt::format("there is no such key; there are: {}", fmt::join(names, ", "))
                              : fmt::format("there is no such key; did you mean {}?", fmt::join(near, " or ")));
  }

  const TomlDocument& document_;
  const tune::TuneConfig* present_;
  tune::Program program_ = {};
  Resources resources_ = {};
  tune::Space space_ = {};
  Dict tune_config_ = {};
  Dict run_config_ = {};
  tune::Stop stop_ = {};
  std::string name_ = {};
  fs::path storage_path_ = {};
  IfExists if_exists_ = IfExists::fail;
};

TomlDocument read_document(const fs::path& file, const std::vector<std::string>& changes) {
  if (!file.empty() && !fs::exists(file)) throw NotFound("there is no file " + file.string());
  TomlDocument document(file.empty() ? "" : base::read_file(file), file.filename().string());
  for (const std::string& change : changes) document.change(change);
  return document;
}

}  // namespace

TuneFile read_tune_file(const fs::path& file, const std::vector<std::string>& changes,
                        const std::vector<std::string>& command) {
  TuneFile read = Reader(read_document(file, changes)).read();
  if (!command.empty()) read.program.command = command;
  if (!read.program.is_set())
    throw InvalidArgument(
        fmt::format("{}: there is no program: write it after --, as in cadre tune {} -- ./train --lr "
                    "{{lr}}, or as command = [\"./train\", \"--lr\", \"{{lr}}\"]",
                    file.filename().string(), file.string()));
  // A restore in another directory finds the files that the arguments name.
  if (read.program.working_directory.empty() && !read.options.run_config.chdir_to_trial_dir)
    read.program.working_directory = fs::current_path();
  return read;
}

tune::Extension read_extension(const fs::path& file, const std::vector<std::string>& changes,
                               const tune::TunerOptions& present) {
  const TomlDocument document = read_document(file, changes);
  tune::TunerOptions options = Reader(document, &present.tune_config).read().options;
  tune::Extension extension;
  for (const auto& [key, value] : document.entries()) {
    const tune::TuneConfig& tune = options.tune_config;
    if (key == "num_samples") {
      extension.num_samples = tune.num_samples;
    } else if (key == "max_concurrent_trials") {
      extension.max_concurrent_trials = tune.max_concurrent_trials;
    } else if (key == "time_budget") {
      extension.time_budget = tune.time_budget;
    } else if (key == "searcher") {
      extension.searcher = tune.searcher;
    } else if (key == "scheduler") {
      extension.scheduler = tune.scheduler;
    } else if (key == "space") {
      add_others(options.param_space, present.param_space);
      extension.param_space = std::move(options.param_space);
    } else if (key == "stop") {
      tune::Stop& stop = options.run_config.stop;
      add_others(stop.thresholds, present.run_config.stop.thresholds);
      if (find_entry(value.dict(), "stoppers") == nullptr) stop.stoppers = present.run_config.stop.stoppers;
      extension.stop = std::move(stop);
    } else {
      std::vector<std::string> names = names_of<tune::Extension>();
      std::ranges::replace(names, "param_space", "space");
      throw InvalidArgument(
          fmt::format("{}: {} stays as it is in an experiment that goes on; what it may have anew: {}",
                      document.place(key), key, fmt::join(names, ", ")));
    }
  }
  return extension;
}

}  // namespace cadre::cli
