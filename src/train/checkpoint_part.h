// What a rank says of the checkpoint that it reports: where its part of it lies, and what is to be done with that. The
// typed form of channel::Report's details.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archive.h"
#include "cadre/value.h"
#include "channel/message.h"

namespace cadre::train {

using Rank = std::int64_t;

struct CheckpointPart {
  enum class Kind {
    ours,      // a directory that was made for this report: moved
    borrowed,  // one of the user's: copied, and left alone until that is done
    in_place,  // lies in the run's directory, and becomes the checkpoint where it is
    promised,  // in_place once a function has made it that still runs in the rank's worker
  };
  Kind kind = Kind::ours;
  Rank rank = 0;               // whose
  std::string path = {};       // ours, in_place: inside the run's directory; borrowed: whole; promised: none yet
  bool remove_source = false;  // borrowed: when it is copied
  bool operator==(const CheckpointPart&) const = default;

  static void fields(auto& archive, auto& part) {
    archive("kind", part.kind);
    archive("rank", part.rank);
    archive("path", part.path);
    archive("remove_source", part.remove_source);
  }
};

// What a report asks for beside its checkpoint's commit.
struct WantedValidation {
  std::string function = {};             // empty: that of the run
  Config config = {};                    // for the run's function: over that of the run
  std::optional<double> timeout_s = {};  // empty: that of the run

  static void fields(auto& archive, auto& wanted) {
    archive("function", wanted.function);
    archive("config", wanted.config);
    archive("timeout_s", wanted.timeout_s);
  }
};

// Whether its files become a part of one directory; else the ranks have agreed on that directory.
inline bool is_merged(const CheckpointPart& part) {
  return part.kind == CheckpointPart::Kind::ours || part.kind == CheckpointPart::Kind::borrowed;
}

// The checkpoint that a group has reported.
struct GroupCheckpoint {
  std::vector<CheckpointPart> parts = {};  // of those ranks that have one, lowest rank first; empty: there is none
  bool waits = true;                       // report() returns when it is committed, and not before
  bool upload = false;                     // it has to be copied or sent somewhere before it can be committed
  std::string directory = {};              // the name that it is to have; empty: the next number
  std::optional<WantedValidation> validation = {};

  static void fields(auto& archive, auto& checkpoint) {
    archive("parts", checkpoint.parts);
    archive("waits", checkpoint.waits);
    archive("upload", checkpoint.upload);
    archive("directory", checkpoint.directory);
    archive.added("validation", checkpoint.validation);
  }
};

// As the store has it: names of directories with commas between where that says everything, else JSON.
std::string to_text(const GroupCheckpoint& checkpoint);
// Throws StorageError for what to_text() did not write; `source` names it. Directories of the user's are not removed
// any more when they are copied.
GroupCheckpoint to_group_checkpoint(const std::string& text, const std::string& source);

// What one rank says with a report.
struct PartReport {
  std::optional<CheckpointPart> part = {};
  bool waits = true;           // its report() returns when the checkpoint is committed, and not before
  std::string directory = {};  // the name that the checkpoint is to have; empty: the next number
  std::optional<WantedValidation> validation = {};

  static void fields(auto& archive, auto& said) {
    archive("part", said.part);
    archive("waits", said.waits);
    archive("directory", said.directory);
    archive("validation", said.validation);
  }
};

// Puts it into the report, and reads it there. Throws InvalidArgument or NotFound for what put_into() did not write.
void put_into(channel::Report& report, const PartReport& said);
PartReport part_in(const channel::Report& report, Rank rank);

}  // namespace cadre::train
