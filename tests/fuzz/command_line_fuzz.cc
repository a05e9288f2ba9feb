// The text after --filter is either refused or a consistent condition; stored options of any content are shown on one
// line each.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>

#include "base/json.h"
#include "cadre/error.h"
#include "cli/columns.h"
#include "cli/option_texts.h"
#include "fuzz/require.h"

using namespace cadre;
using fuzz::require;

namespace {

tune::Result trial_with(Value value) {
  tune::Result trial;
  trial.metrics.set("metric", std::move(value));
  return trial;
}

void check_filter(const std::string& condition, const Value& value) {
  if (condition.starts_with('=')) return;  // it would change the operator
  const tune::Result trial = trial_with(value);
  const auto holds = [&](const char* operation) {
    return cli::Filter("metric " + std::string(operation) + " " + condition)(trial);
  };
  try {
    require(holds("==") != holds("!="), "a value equals another one or not");
    require(!(holds("<") && holds(">")), "a value is not less and greater");
    require(!holds("<") || holds("<="), "what is less is less or equal");
    require(!holds(">") || holds(">="), "what is greater is greater or equal");
  } catch (const InvalidArgument&) {
  }
  try {
    cli::Filter{condition}(trial);
  } catch (const InvalidArgument&) {
  }
}

void check_options(const Config& options) {
  try {
    for (const auto& [label, text] : cli::option_texts(options))
      require(std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
              "options are printable");
  } catch (const Error&) {  // a part of the search space has the wrong form
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const std::string condition = input.ConsumeRandomLengthString(100);
  try {
    const Value value = base::parse_json(input.ConsumeRemainingBytesAsString(), "text");
    check_filter(condition, value);
    if (value.is_dict()) check_options(Config(value.dict()));
  } catch (const StorageError&) {
  }
  return 0;
}
