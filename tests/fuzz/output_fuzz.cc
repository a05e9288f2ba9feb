// Any output of a worker is described in a few lines of text; and a lookup of an address in any file gives a function
// or none.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/native_stack.h"
#include "base/utf8.h"
#include "engine/local/function_symbols.h"
#include "engine/local/last_output.h"
#include "engine/local/output_limit.h"
#include "fuzz/require.h"

using cadre::fuzz::require;
namespace local = cadre::engine::local;

namespace {

void look_at_text(std::string_view text) {
  const std::string described = local::describe_output(text);
  require(cadre::base::is_utf8(described), "a description is text");
  require(described.size() <= 8 * local::kMostOutputBytes, "a description is short");
  require(described.empty() || described.starts_with("  "), "a description is indented");
  require(!described.ends_with('\n'), "a description has no line end at its end");
  const std::string without = cadre::base::without_native_stacks(text);
  require(without.size() <= text.size(), "nothing is added to a message");
  static_cast<void>(local::dropped_output(text));
}

void look_at_file(std::string_view content) {
  static const int file = ::memfd_create("elf", 0);
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, content.data(), content.size(), 0) != static_cast<ssize_t>(content.size()))
    return;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const local::FunctionSymbols symbols(path);
  for (const std::uint64_t address : {0ull, 0x10ull, 0x1000ull, ~0ull}) {
    const auto found = symbols.find(address);
    require(!found || found->offset <= address, "an address lies behind the beginning of its function");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view input(data, size);
  input.starts_with(
      "\x7f"
      "ELF")
      ? look_at_file(input)
      : look_at_text(input);
  return 0;
}
