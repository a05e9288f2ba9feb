#include "tune/loggers/pbt_log.h"

#include "base/json.h"

namespace cadre::tune {

void PbtLog::add(const LogExploit& exploit, const Trial& target, const Trial& donor) {
  if (!exploit.policy_files) return;
  std::string line;
  base::append_json(line, list(target.tag, donor.tag, exploit.target_iteration, exploit.donor_iteration,
                               exploit.donor_config.dict(), exploit.new_config.dict()));
  line += '\n';
  if (std::exchange(global_is_new_, false)) base::replace_file(global_.path(), "");
  global_.append(line);

  // The target's own past ends here; from now on the donor's is its past.
  std::string history = policies_[exploit.donor] + line;
  base::replace_file(directory_ / ("pbt_policy_" + target.id + ".txt"), history);
  policies_[exploit.target] = std::move(history);
}

}  // namespace cadre::tune
