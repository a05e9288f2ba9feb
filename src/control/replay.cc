#include "control/replay.h"

#include <fmt/format.h>

#include "base/json.h"
#include "checkpoint/checkpoint_files.h"
#include "control/work_place.h"

namespace cadre::control {
namespace {

std::string describe(const store::DecisionRow& decision) {
  const std::string trial = decision.trial < 0 ? std::string() : fmt::format(" for trial {}", decision.trial);
  return fmt::format("\"{}\"{} with {}", decision.kind, trial, decision.data);
}

bool same(const store::DecisionRow& a, const store::DecisionRow& b) {
  return a.kind == b.kind && a.trial == b.trial && a.data == b.data;
}

}  // namespace

void Recovered::add_checkpoint(const store::CheckpointRow& row, const checkpoint::CheckpointRegistry& registry) {
  if (!row.synced) {
    unsealed_checkpoints.emplace_back(row.id, row.directory);
  } else if (registry.contains(row.id) && !registry.is_synced(row.id)) {
    sealed_checkpoints[row.id] = row.manifest.empty() ? Dict() : base::parse_json(row.manifest, row.directory).dict();
  }
}

void Recovered::set_aside(const WorkPlace& work_place, const base::InnerPath& directory) {
  if (std::string aside = checkpoint::set_aside(work_place.directory(), directory); !aside.empty())
    to_remove.emplace_back(std::move(aside));
  work_place.remove_where_published(directory);
}

void DecisionCheck::begin_event(std::int64_t sequence) {
  end_event();
  event_ = sequence;
}

void DecisionCheck::compare(const store::DecisionRow& recorded) {
  if (divergence_) return;
  if (compared_ == decisions_.size()) return differs(describe(recorded), "nothing");
  const store::DecisionRow& now = decisions_[compared_++];
  if (!same(now, recorded)) differs(describe(recorded), describe(now));
}

void DecisionCheck::end_event() {
  if (!divergence_ && compared_ < decisions_.size()) differs("nothing more", describe(decisions_[compared_]));
  if (divergence_) divergence_->decisions.insert(divergence_->decisions.end(), decisions_.begin(), decisions_.end());
  decisions_.clear();
  compared_ = 0;
}

void DecisionCheck::differs(const std::string& recorded, const std::string& now) {
  const std::string what =
      fmt::format("after event {} the store records {}, but this program decides {}", event_, recorded, now);
  if (!allow_divergence_) throw StorageError(what + ". Continue it with the program that began it" + advice_);
  divergence_ = Divergence{event_, what, {}};
}

}  // namespace cadre::control
