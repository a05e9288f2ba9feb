// Names and messages from outside: as UTF-8, on a terminal, as a file name.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <string>

#include "base/display_text.h"
#include "base/name.h"
#include "base/utf8.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

void check_utf8(const std::string& text) {
  const std::string utf8 = base::to_utf8(text);
  require(base::is_utf8(utf8), "what was made UTF-8 is UTF-8");
  if (base::is_utf8(text)) require(utf8 == text, "UTF-8 stays as it is");
}

void check_display(const std::string& text, std::size_t columns, base::Encoding encoding) {
  const std::string shown = base::printable(text, encoding);
  require(std::ranges::none_of(shown, is_control), "no control character reaches a terminal");
  require(base::is_utf8(shown), "what is shown is UTF-8");
  require(base::printable(shown, encoding) == shown, "what is printable stays as it is");
  if (encoding == base::Encoding::ascii) require(base::display_width(shown) == shown.size(), "ASCII is ASCII");
  for (const auto cut : {base::first_columns, base::last_columns}) {
    const std::string fitted = cut(shown, columns, encoding);
    require(base::display_width(fitted) <= columns, "a text that was cut fits its columns");
    require(base::is_utf8(fitted), "no character is cut in two");
  }
}

void check_name(const std::string& text, std::size_t most) {
  const std::string name = base::safe_file_name(text, most);
  require(name.size() <= most, "a file's name has at most as many bytes as asked for");
  require(name.find('/') == std::string::npos && std::ranges::none_of(name, is_control), "a file's name is one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const auto columns = input.ConsumeIntegralInRange<std::size_t>(0, 20);
  const auto encoding = input.ConsumeBool() ? base::Encoding::utf8 : base::Encoding::ascii;
  const std::string text = input.ConsumeRemainingBytesAsString();
  check_utf8(text);
  check_display(text, columns, encoding);
  check_name(text, columns);
  return 0;
}
