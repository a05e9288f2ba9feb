#include "train/validation_log.h"

#include "base/json.h"

namespace cadre::train {

void ValidationLog::add(const ShowValidation& validation, double time) {
  base::append_json(pending_, Dict{{"checkpoint", validation.checkpoint},
                                   {"status", to_string(validation.status)},
                                   {"metrics", validation.metrics.dict()},
                                   {"reported_metrics", validation.reported.dict()},
                                   {"validation_metrics", validation.validated.dict()},
                                   {"error", validation.error},
                                   {"timestamp", time}});
  pending_ += '\n';
}

void ValidationLog::flush() {
  if (pending_.empty()) return;
  if (is_new_) file_.replace("");
  is_new_ = false;
  file_.append(pending_);
  pending_.clear();
}

}  // namespace cadre::train
