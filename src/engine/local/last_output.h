// Reads the last output of a worker that ended without a message: the cause, more often than not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cadre::engine::local {

// Lines of output, and frames of a back trace, that are shown; and bytes of each.
inline constexpr std::size_t kMostOutputLines = 10;
inline constexpr std::size_t kMostFrames = 20;
inline constexpr std::size_t kMostOutputBytes = std::size_t{4} << 10;

// The end of what a worker has written to stderr, as people read it: its last lines, and below them its back trace (see
// crash_handler.h) with the names of functions, as far as they are known. Stacks of libtorch's errors are left out,
// bytes that are no UTF-8 replaced. Each line is indented by two blanks; none ends the text. Empty where nothing was
// written.
std::string describe_output(std::string_view end_of_stderr);

// The same for a file, which held `from` bytes when the worker began. Empty for one that cannot be read.
std::string last_output(const std::filesystem::path& file, std::uint64_t from);

}  // namespace cadre::engine::local
