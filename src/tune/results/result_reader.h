// The implementation of ResultGrid::from_directory: reads a result for each trial from the experiment's store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "cadre/tune/result.h"
#include "store/experiment_reader.h"

namespace cadre::tune {

// Reads the results of an experiment, again and again if it grows: after the first time only what was added to its
// store since. If the store is not the one that was read before with rows behind it, everything is read anew.
class ResultReader {
 public:
  // `copy`: a temporary copy to remove when the results are gone; they keep it alive.
  explicit ResultReader(std::filesystem::path directory, std::shared_ptr<const std::filesystem::path> copy = {});
  ResultReader(ResultReader&&) noexcept;
  ~ResultReader();

  // Brings the results up to date. `check`: Check::rows if the whole store was checked before. Throws what
  // ResultGrid::from_directory throws; then everything is read anew the next time.
  void read(store::ExperimentReader::Check check);

  // Return the results of the last read(); the second one leaves none here.
  ResultGrid results() const&;
  ResultGrid results() &&;
  // Returns the number of times that everything was read anew: as long as it is the same, results have only been added.
  std::uint64_t generation() const { return generation_; }

 private:
  struct State;

  std::filesystem::path directory_;
  std::shared_ptr<const std::filesystem::path> copy_;
  std::unique_ptr<State> state_;  // nullptr: nothing was read
  std::uint64_t generation_ = 0;
};

// Reads the results of the experiment in `directory` once.
ResultGrid read_results(const std::filesystem::path& directory, store::ExperimentReader::Check check,
                        std::shared_ptr<const std::filesystem::path> copy = {});

}  // namespace cadre::tune
