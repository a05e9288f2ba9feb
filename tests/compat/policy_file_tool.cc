// Policy files of Population Based Training, for pbt_replay_test.py.
//
//   policy_file_tool read FILE...       each file's schedule, as a JSON line: {"initial_config", "changes"}
//   policy_file_tool write DIRECTORY    writes the files of an experiment, whose exploits are JSON lines on stdin:
//                                       [[target, tag], [donor, tag], target iteration, donor iteration, donor config,
//                                       new config]
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "base/json.h"
#include "tune/loggers/pbt_log.h"
#include "tune/schedulers/policy_file.h"

namespace {

using namespace cadre;
using namespace cadre::tune;

void read(const std::filesystem::path& file) {
  const PolicySchedule schedule = read_policy_file(file);
  List changes;
  for (const PolicySchedule::Change& change : schedule.changes)
    changes.push_back(list(change.change_at, change.config.dict()));
  std::cout << base::to_json(Dict{{"initial_config", schedule.initial_config.dict()}, {"changes", std::move(changes)}})
            << '\n';
}

Trial trial_of(const Value& value) {
  const List& words = value.items();
  Trial trial;
  trial.index = words.at(0).get<TrialIndex>();
  char id[16];
  std::snprintf(id, sizeof id, "%05u", trial.index);
  trial.id = id;
  trial.tag = words.at(1).get<std::string>();
  return trial;
}

void write(const std::filesystem::path& directory) {
  PbtLog log(directory);
  for (std::string line; std::getline(std::cin, line);) {
    const List words = base::parse_json(line, "an exploit").items();
    const Trial target = trial_of(words.at(0));
    const Trial donor = trial_of(words.at(1));
    log.add({.target = target.index,
             .donor = donor.index,
             .target_iteration = words.at(2).get<std::int64_t>(),
             .donor_iteration = words.at(3).get<std::int64_t>(),
             .donor_config = Config(words.at(4).dict()),
             .new_config = Config(words.at(5).dict())},
            target, donor);
  }
  log.flush();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argv[1];
    for (int i = 2; i < argc; ++i) mode == "read" ? read(argv[i]) : write(argv[i]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "policy_file_tool: " << error.what() << '\n';
    return 1;
  }
}
