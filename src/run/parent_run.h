// What a run belongs to that a worker's function starts: a trial whose function trains with workers of its own. The
// trial reports what its run reports, and its run begins from the checkpoint of the trial.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cadre/checkpoint.h"
#include "cadre/value.h"

namespace cadre::run {

class ParentRun {
 public:
  // That of this process, from now on until it is destroyed.
  ParentRun();
  virtual ~ParentRun();
  ParentRun(const ParentRun&) = delete;
  ParentRun& operator=(const ParentRun&) = delete;

  // nullptr where runs are nobody's.
  static ParentRun* current();

  // Where directories of its runs may be made.
  virtual std::filesystem::path directory() const = 0;
  // Whose objects its runs may use.
  virtual std::filesystem::path experiment() const = 0;
  // To begin from; empty: at the beginning.
  virtual std::optional<Checkpoint> checkpoint() const = 0;
  // Reports a result, with a committed checkpoint of the run's, which stays the run's as well; an empty path is none.
  // Returns, perhaps much later, whether the run goes on; otherwise it is to end, and fit() with StopWorker. Throws
  // what reporting throws.
  virtual bool forward(const Metrics& metrics, const std::filesystem::path& checkpoint) = 0;
};

}  // namespace cadre::run
