#include "tune/loggers/pbt_log.h"

#include "base/json.h"

namespace cadre::tune {

void PbtLog::add(const LogExploit& exploit, const Trial& target, const Trial& donor) {
  if (!exploit.policy_files) return;
  std::string line;
  base::append_json(line, list(target.tag, donor.tag, exploit.target_iteration, exploit.donor_iteration,
                               exploit.donor_config.dict(), exploit.new_config.dict()));
  pending_ += line += '\n';
  // The target's own past ends here; from now on the donor's is its past.
  policies_[exploit.target] = policies_[exploit.donor] + line;
  changed_[exploit.target] = target.id;
}

void PbtLog::flush() {
  if (pending_.empty()) return;
  for (const auto& [trial, id] : changed_)
    base::replace_file(directory_ / ("pbt_policy_" + id + ".txt"), policies_.at(trial));
  changed_.clear();
  if (global_is_new_) base::replace_file(global_.path(), "");
  global_is_new_ = false;
  global_.append(pending_);
  pending_.clear();
}

}  // namespace cadre::tune
