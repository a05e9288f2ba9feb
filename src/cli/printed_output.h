// Reads the output file of a worker in steps, while the worker may still be writing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cadre::cli {

class PrintedOutput {
 public:
  // Called with each line, without its end. A line of more than kLongestLine bytes comes in parts.
  using Show = std::function<void(std::string_view line)>;
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  // `file` need not exist yet. Starts with the last `last_lines` lines that it has at the first call of show_new();
  // empty: from the beginning.
  PrintedOutput(std::filesystem::path file, std::optional<std::size_t> last_lines)
      : file_(std::move(file)), last_lines_(last_lines) {}

  // Shows the lines written since the last call; an unfinished line only if `last`. If the output limit
  // (engine/local/output_limit.h) has dropped bytes before they could be shown, shows a line that says so. Throws
  // StorageError if the file cannot be read.
  void show_new(bool last, const Show& show);

 private:
  void show_text(std::string_view text, const Show& show);

  std::filesystem::path file_;
  std::optional<std::size_t> last_lines_;
  bool begun_ = false;
  std::uint64_t position_ = 0;  // offset in all output ever printed, up to which it was shown or skipped
  std::string line_ = {};       // an unfinished line
};

}  // namespace cadre::cli
