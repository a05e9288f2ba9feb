// The parent of a run that a worker's function starts: the trial whose function trains with workers of its own. The
// trial reports the run's results, and the run begins from the trial's checkpoint.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cadre/checkpoint.h"
#include "cadre/value.h"

namespace cadre::worker {

class ParentRun {
 public:
  // Registers itself as the current ParentRun of this process until destroyed.
  ParentRun();
  virtual ~ParentRun();
  ParentRun(const ParentRun&) = delete;
  ParentRun& operator=(const ParentRun&) = delete;

  // Returns the current one; nullptr if runs in this process have no parent.
  static ParentRun* current();

  // Returns the directory in which the directories of its runs are made.
  virtual std::filesystem::path directory() const = 0;
  // Returns the directory of the experiment whose objects its runs may use.
  virtual std::filesystem::path experiment() const = 0;
  // Returns the checkpoint to begin from; empty: none, begin anew.
  virtual std::optional<Checkpoint> checkpoint() const = 0;
  // Reports a result of the run, with its committed checkpoint, which stays the run's as well; an empty path: none.
  // Blocks, perhaps for long. Returns true if the run goes on; otherwise the run must end, and fit() throw StopWorker.
  // Throws what reporting throws.
  virtual bool forward(const Metrics& metrics, const std::filesystem::path& checkpoint) = 0;
};

}  // namespace cadre::worker
