// An event file is the same however often it was flushed, torn and resumed; and a file of any bytes is read up to its
// first invalid record.
#include <cmath>
#include <memory>
#include <string>

#include "fuzz/fuzzed_value.h"
#include "fuzz/require.h"
#include "loggers/flat_row.h"
#include "loggers/tensorboard_events.h"
#include "loggers/tensorboard_file.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;
using loggers::TensorBoardFile;
using test_support::content_of;
using test_support::TemporaryDirectory;

namespace {

std::string name_in(const TemporaryDirectory& directory) {
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    require(name.empty(), "there is one event file");
    name = entry.path().filename().string();
  }
  return name;
}

void clear(const TemporaryDirectory& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) std::filesystem::remove(entry.path());
}

void check_rows(FuzzedDataProvider& input) {
  static const TemporaryDirectory whole_directory;
  static const TemporaryDirectory torn_directory;
  clear(whole_directory);
  clear(torn_directory);
  TensorBoardFile whole(whole_directory.path());
  auto torn = std::make_unique<TensorBoardFile>(torn_directory.path());
  for (int time = 1; input.remaining_bytes() > 0; ++time) {
    const Dict row = loggers::flatten(Metrics(fuzz::dict_from(input)).dict());
    whole.add(row, time);
    torn->add(row, time);
    torn->flush();
    if (input.ConsumeBool()) continue;
    const TensorBoardFile::Stamp stamp = torn->stamp();
    if (stamp.name.empty()) continue;
    std::ofstream(torn_directory / stamp.name, std::ios::app) << input.ConsumeRandomLengthString(20);
    torn = std::make_unique<TensorBoardFile>(torn_directory.path());
    require(torn->resume(stamp), "a file that was torn goes on where it was");
  }
  whole.flush();
  const std::string name = name_in(whole_directory);
  require(name == name_in(torn_directory), "the name follows from the first result");
  if (name.empty()) return;
  const std::string content = content_of(whole_directory / name);
  require(content == content_of(torn_directory / name), "the file is the same however often it was torn");
  require(loggers::tensorboard::is_cadres(content), "the file says that it is Cadre's");
  require(loggers::tensorboard::read_content(content).results == content.size(), "all that was written is read");
}

void check_any_file(const std::string& file) {
  const loggers::tensorboard::FileContent content = loggers::tensorboard::read_content(file);
  require(content.results <= file.size(), "what is read lies in the file");
  const auto again = loggers::tensorboard::read_content(std::string_view(file).substr(0, content.results));
  require(again.results == content.results && again.scalar_tags == content.scalar_tags &&
              again.histogram_tags == content.histogram_tags,
          "the results are those of the records before the first of a session");
  loggers::tensorboard::is_cadres(file);
}

// The file begins with Cadre's header, so that it is resumed.
void check_any_tail(const std::string& tail) {
  static const TemporaryDirectory directory;
  std::string content;
  loggers::tensorboard::append_file_version(content, 1);
  content += tail;
  test_support::write_bytes(directory / "events.out.tfevents.1.host", content);
  check_any_file(content);
  TensorBoardFile file(directory.path());
  file.resume();
  file.add({{"loss", 0.5}}, 2);
  file.flush();
  require(loggers::tensorboard::is_cadres(content_of(directory / "events.out.tfevents.1.host")), "the file goes on");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  switch (input.ConsumeIntegralInRange(0, 2)) {
    case 0:
      check_rows(input);
      break;
    case 1:
      check_any_file(input.ConsumeRemainingBytesAsString());
      break;
    default:
      check_any_tail(input.ConsumeRemainingBytesAsString());
  }
  return 0;
}
