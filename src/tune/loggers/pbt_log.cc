#include "tune/loggers/pbt_log.h"

#include <sstream>

#include "base/json.h"

namespace cadre::tune {

void PbtLog::add(const LogExploit& exploit, const Trial& target, const Trial& donor) {
  std::string line;
  base::append_json(line, list(target.tag, donor.tag, exploit.target_iteration, exploit.donor_iteration,
                               exploit.donor_config.dict(), exploit.new_config.dict()));
  pending_ += line += '\n';
  remember(line, exploit.target, exploit.donor, target.id);
}

bool PbtLog::resume(const base::AppendFile::Stamp& stamp, const std::vector<Trial>& trials) {
  if (!global_.resume(stamp)) return false;
  global_is_new_ = stamp.size == 0;
  if (global_is_new_) return true;
  std::istringstream lines(base::read_file(global_.path()));
  const auto trial_of = [](const Value& tag) { return trial_of_tag(tag.get<std::string>()); };
  for (std::string line; std::getline(lines, line);) {
    const List fields = base::parse_json(line, global_.path().string()).items();
    const TrialIndex target = trial_of(fields.at(0));
    remember(line + "\n", target, trial_of(fields.at(1)), trials.at(target).id);
  }
  write_policies();
  return true;
}

// Replaces the target's history by the donor's, followed by this exploit.
void PbtLog::remember(const std::string& line, TrialIndex target, TrialIndex donor, const std::string& target_id) {
  policies_[target] = policies_[donor] + line;
  changed_[target] = target_id;
}

void PbtLog::write_policies() {
  for (const auto& [trial, id] : changed_) base::replace_file(directory_ / policy_file_name(id), policies_.at(trial));
  changed_.clear();
}

void PbtLog::flush() {
  if (pending_.empty()) return;
  write_policies();
  if (global_is_new_) global_.replace("");
  global_is_new_ = false;
  global_.append(pending_);
  pending_.clear();
}

}  // namespace cadre::tune
