#include "tune/loggers/trial_rows.h"

#include <algorithm>
#include <iterator>

#include "base/host_object.h"
#include "base/utf8.h"
#include "tune/result_keys.h"

namespace cadre::tune {

Dict row_of(const LogResult& result) {
  Dict row;
  row.reserve(result.metrics.dict().size() + 3);  // the config follows
  std::ranges::copy_if(result.metrics.dict(), std::back_inserter(row),
                       [](const auto& entry) { return entry.first != result_key::done; });
  row.emplace_back(result_key::checkpoint_dir_name,
                   result.checkpoint_dir_name.empty() ? Value() : Value(result.checkpoint_dir_name));
  row.emplace_back(result_key::done, result.done);
  return row;
}

loggers::tensorboard::Session session_of(const Trial& trial, const LogEnd& end, double time) {
  loggers::tensorboard::Session session{
      .group_name = trial.id, .end_time = time, .success = end.status != TrialStatus::error};
  for (const auto& [path, drawn] : trial.sampled) {
    const Value* now = end.config.find(path);
    session.hparams.emplace_back(base::to_utf8(path), now == nullptr ? drawn : base::without_host_objects(*now));
  }
  return session;
}

Dict last_row_of(const LogEnd& end) {
  Dict row = end.last_result.dict();
  if (find_entry(row, result_key::done) == nullptr) row.emplace_back(result_key::done, true);
  return row;
}

}  // namespace cadre::tune
