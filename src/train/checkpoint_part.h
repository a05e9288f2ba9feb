// A rank's part of a reported checkpoint: where it lies, and what to do with it. The typed form of channel::Report's
// details.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/function.h"
#include "cadre/value.h"
#include "channel/message.h"
#include "engine/engine.h"

namespace cadre::train {

using Rank = std::int64_t;

struct CheckpointPart {
  enum class Kind {
    ours,      // a directory made for this report: moved
    borrowed,  // a directory of the user's: copied, and left alone until the copy is complete
    in_place,  // in the run's directory: becomes the checkpoint without being moved
    promised,  // made by a function that is still running in the rank's worker; in_place when that has returned
    copying,   // a directory made for this report, into which the rank's worker still copies; ours when that is done
  };
  Kind kind = Kind::ours;
  Rank rank = 0;  // the reporting rank
  // ours, in_place, copying: relative to the run's directory, or its node's; borrowed: absolute; promised: empty
  std::string path = {};
  bool remove_source = false;  // borrowed: remove the directory after the copy
  // The node below whose own directory it lies, where nodes do not see the run's: it is fetched from there, as a
  // borrowed one is copied. Empty: it does not.
  std::optional<engine::NodeId> node = {};
  bool operator==(const CheckpointPart&) const = default;
};

// A validation requested with a report.
struct WantedValidation {
  std::string function = {};                // empty: the run's function
  HostFunction host_function = {};          // set if the function is one of a host
  Config config = {};                       // for the run's function: overrides entries of the run's config
  std::optional<double> timeout_s = {};     // seconds; empty: the run's timeout
  std::optional<Resources> resources = {};  // empty: those of the run's validations
  bool operator==(const WantedValidation&) const = default;
};

// Returns true if its files become a part of one directory; otherwise the ranks have agreed on that directory.
inline bool is_merged(const CheckpointPart& part) {
  return part.kind != CheckpointPart::Kind::in_place && part.kind != CheckpointPart::Kind::promised;
}
// Returns true if it is copied to the run's directory before the commit.
inline bool is_copied(const CheckpointPart& part) {
  return part.kind == CheckpointPart::Kind::borrowed || part.node.has_value();
}
// Returns true if its rank's worker has still to finish it.
inline bool is_awaited(const CheckpointPart& part) {
  return part.kind == CheckpointPart::Kind::promised || part.kind == CheckpointPart::Kind::copying;
}

// A checkpoint that a group has reported.
struct GroupCheckpoint {
  std::vector<CheckpointPart> parts = {};  // of the ranks that reported one, lowest rank first; empty: no checkpoint
  bool waits = true;                       // true if report() returns only after the commit
  bool upload = false;                     // true if it must be copied or sent somewhere before the commit
  std::string directory = {};              // requested name; empty: the next number
  std::optional<WantedValidation> validation = {};
  bool until_published = false;  // true if report() returns only after it was published
  bool operator==(const GroupCheckpoint&) const = default;
};

// Returns the form used in the store: comma-separated directory names if they suffice, otherwise JSON.
std::string to_text(const GroupCheckpoint& checkpoint);
// Parses text from the store; `source` names it in messages. Throws StorageError for text that to_text() did not
// write. Clears remove_source, so that no directory of the user's is removed after its copy.
GroupCheckpoint to_group_checkpoint(const std::string& text, const std::string& source);

// One rank's report about its checkpoint.
struct PartReport {
  std::optional<CheckpointPart> part = {};
  bool waits = true;           // true if its report() returns only after the commit
  std::string directory = {};  // requested name of the checkpoint; empty: the next number
  std::optional<WantedValidation> validation = {};
  bool until_published = false;
};

// Write it into a report, and read it from one. part_in() throws InvalidArgument or NotFound for details that
// put_into() did not write.
void put_into(channel::Report& report, const PartReport& said);
PartReport part_in(const channel::Report& report, Rank rank);

}  // namespace cadre::train
