#include "engine/local/last_output.h"

#include <cxxabi.h>
#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/cut_text.h"
#include "base/file.h"
#include "base/native_stack.h"
#include "base/utf8.h"
#include "cadre/error.h"
#include "engine/local/crash_handler.h"
#include "engine/local/function_symbols.h"

namespace cadre::engine::local {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestName = 4096;
constexpr std::uint64_t kBytesRead = std::uint64_t{64} << 10;
// Frames that call user code, unless they are inlined; frames below them are Cadre's own.
constexpr std::array<std::string_view, 3> kFramesOfEntry{"cadre::worker::(anonymous namespace)::run_entry(",
                                                         "cadre::worker::(anonymous namespace)::serve(",
                                                         "cadre::worker::run_worker("};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != line.npos) lines.push_back(line.substr(0, line.find_last_not_of('\r') + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string demangled(const std::string& name) {
  if (name.size() > kLongestName) return name;  // the text is not trusted
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

// One line of backtrace_symbols_fd(): "file(function+0x1f) [0x7f...]", or "file(+0x1f) [0x7f...]" if the function is
// unknown.
struct Frame {
  std::string file;
  std::string function = {};
  std::uint64_t offset = 0;  // in the function, or in the file if the function is unknown
};

std::optional<Frame> parse_frame(std::string_view line) {
  const std::size_t address = line.rfind("[0x");
  const std::size_t open = line.rfind('(', address);
  const std::size_t close = line.find(')', open);
  if (address == line.npos || open == line.npos || open == 0 || close > address) return std::nullopt;
  const std::string_view place = line.substr(open + 1, close - open - 1);
  const std::size_t plus = place.rfind("+0x");
  if (plus == place.npos) return std::nullopt;
  Frame frame{.file = std::string(line.substr(0, open)), .function = std::string(place.substr(0, plus))};
  std::from_chars(place.data() + plus + 3, place.data() + place.size(), frame.offset, 16);
  return frame;
}

// Returns the file of a frame. The frame of the program itself has the name it was started with, which may be
// relative to another directory.
fs::path file_of(const Frame& frame) {
  return frame.file == program_invocation_name ? fs::path("/proc/self/exe") : fs::path(frame.file);
}

// Returns "f(int)+0x1f (libmodel.so)", or the line unchanged if it is not a frame. A caller's frame has its return
// address, which is past the end of the function after a call that never returns, so the address before it is used.
std::string frame_text(std::string_view line, bool is_caller, std::map<fs::path, FunctionSymbols>& symbols) {
  std::optional<Frame> frame = parse_frame(line);
  if (!frame) return std::string(line);
  if (frame->function.empty()) {
    const std::uint64_t before = is_caller && frame->offset > 0 ? 1 : 0;
    const fs::path file = file_of(*frame);
    const auto place = symbols.try_emplace(file, file).first->second.find(frame->offset - before);
    if (place && !place->function.empty()) frame = Frame{frame->file, place->function, place->offset + before};
  }
  const std::string file = fs::path(frame->file).filename();
  if (frame->function.empty()) return fmt::format("{}+{:#x}", file, frame->offset);
  return fmt::format("{}+{:#x} ({})", demangled(frame->function), frame->offset, file);
}

std::string shortened(std::string text) {
  if (text.size() > kMostOutputBytes) text.replace(kMostOutputBytes, text.npos, "...");
  return text;
}

std::string describe_frames(const std::vector<std::string_view>& lines) {
  std::map<fs::path, FunctionSymbols> symbols;
  std::string text;
  std::size_t shown = 0;
  for (const std::string_view line : lines) {
    const std::string frame = frame_text(line, shown > 0, symbols);
    if (std::ranges::any_of(kFramesOfEntry, [&](std::string_view begin) { return frame.starts_with(begin); })) break;
    if (++shown > kMostFrames) return text + "\n  ...";
    text += fmt::format("\n  #{} {}", shown - 1, frame);
  }
  return text;
}

}  // namespace

std::string describe_output(std::string_view end_of_stderr) {
  const std::size_t mark = end_of_stderr.rfind(kBackTraceMark);
  const std::string said = base::without_native_stacks(end_of_stderr.substr(0, mark));
  std::vector<std::string_view> lines = lines_of(said);
  if (lines.size() > kMostOutputLines) lines.erase(lines.begin(), lines.end() - kMostOutputLines);
  std::string text;
  for (const std::string_view line : lines) text.append(text.empty() ? "  " : "\n  ").append(line);
  if (text.size() > kMostOutputBytes) text = "  ..." + std::string(base::last_bytes(text, kMostOutputBytes));
  if (mark != end_of_stderr.npos) {
    const std::vector<std::string_view> frames = lines_of(end_of_stderr.substr(mark + kBackTraceMark.size()));
    text += fmt::format("{}  back trace after {}", text.empty() ? "" : "\n", frames.empty() ? "" : frames.front());
    text += shortened(describe_frames({frames.begin() + (frames.empty() ? 0 : 1), frames.end()}));
  }
  return base::to_utf8(text);
}

std::string last_output(const fs::path& file, std::uint64_t from) {
  try {
    const auto opened = base::ReadableFile::open(file, base::ReadableFile::Links::refuse);
    if (!opened) return {};
    const std::uint64_t size = opened->size();
    if (size < from) from = 0;  // the output limit has cut the file
    from = std::max(from, size - std::min(size, kBytesRead));
    std::string text(static_cast<std::size_t>(size - from), '\0');
    text.resize(opened->read(from, std::as_writable_bytes(std::span(text))));
    return describe_output(text);
  } catch (const StorageError&) {
    return {};
  }
}

}  // namespace cadre::engine::local
