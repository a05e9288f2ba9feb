#include "train/checkpoint_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/inner_path.h"
#include "base/json.h"
#include "cadre/error.h"
#include "cadre/stored.h"

namespace cadre::train {

void put_into(channel::Report& report, const PartReport& said) {
  const bool plain = said.waits && said.directory.empty() && !said.validation && !said.until_published;
  if (plain && !said.part) return;
  if (plain && said.part->kind == CheckpointPart::Kind::ours && !said.part->node) {
    report.checkpoint = said.part->path;
  } else {
    report.details = cadre::to_stored(said);
  }
}

PartReport part_in(const channel::Report& report, Rank rank) {
  PartReport said;
  if (!report.details.is_null()) {
    said = cadre::from_value<PartReport>(report.details);
  } else if (!report.checkpoint.empty()) {
    said.part = CheckpointPart{.path = report.checkpoint};
  }
  if (said.part) said.part->rank = rank;
  return said;
}

std::string to_text(const GroupCheckpoint& checkpoint) {
  if (checkpoint.parts.empty()) return {};
  const bool plain = checkpoint.waits && !checkpoint.upload && checkpoint.directory.empty() && !checkpoint.validation &&
                     !checkpoint.until_published &&
                     std::ranges::all_of(checkpoint.parts, [](const CheckpointPart& part) {
                       return part.kind == CheckpointPart::Kind::ours && !part.node;
                     });
  if (!plain) return base::to_json(cadre::to_stored(checkpoint).dict());
  std::string names;
  for (const CheckpointPart& part : checkpoint.parts) names += (names.empty() ? "" : ",") + part.path;
  return names;
}

GroupCheckpoint to_group_checkpoint(const std::string& text, const std::string& source) {
  GroupCheckpoint checkpoint;
  if (text.starts_with('{')) {
    const std::string place = "the checkpoint of " + source;
    checkpoint = cadre::from_stored<GroupCheckpoint>(base::parse_json(text, place), place);
  } else {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      checkpoint.parts.push_back({.path = text.substr(begin, end - begin)});
      begin = end + 1;
    }
  }
  if (!checkpoint.directory.empty()) base::InnerPath(checkpoint.directory, source);
  for (CheckpointPart& part : checkpoint.parts) {
    const bool lies_anywhere = part.kind == CheckpointPart::Kind::borrowed;
    if (!lies_anywhere && !part.path.empty()) base::InnerPath(part.path, source);
    part.remove_source = false;  // the store may come from anyone and name any directory of the user's
  }
  return checkpoint;
}

}  // namespace cadre::train
