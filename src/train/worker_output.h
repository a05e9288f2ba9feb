// What the ranks of a group print, for the person who watches: the new lines of their files, each with its rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/checkpoint_part.h"

namespace cadre::train {

class WorkerOutput {
 public:
  // Of one file, so much is shown of what came between two calls of take().
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  // A group begins whose ranks write the files stdout and stderr in these directories, in their order. What the files
  // hold already, of an earlier group, is not shown.
  void begin(const std::vector<std::filesystem::path>& directories);

  // Whole lines, each ending with a newline.
  struct Text {
    std::string out = {};  // of the ranks' standard outputs
    std::string err = {};  // of their standard errors
  };
  // What has come since the last call. A line without an end waits for it, unless it is the group's `last` call. Files
  // that cannot be read are passed over.
  Text take(bool last);

 private:
  struct Tail {
    Rank rank = 0;
    std::filesystem::path path = {};
    std::optional<base::ReadableFile> file = {};  // none before the worker has made it
    std::uint64_t offset = 0;                     // up to which it was read
    std::string line = {};                        // that has begun
  };
  static std::string read(Tail& tail);
  static void append_lines(Tail& tail, const std::string& text, bool last, std::string& lines);

  std::vector<Tail> tails_ = {};  // standard output and standard error of each rank
};

}  // namespace cadre::train
