// A write-ahead log as SQLite writes it, with damage at one place: the scan's result is known beforehand. And a log of
// any bytes.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "fuzz/require.h"
#include "store/wal_scan.h"
#include "support/temporary_directory.h"

using namespace cadre;
using fuzz::require;

namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;

struct Frame {
  std::uint32_t page = 1;
  std::uint32_t commit = 0;  // number of database pages after this transaction; 0 inside of one
};

void append_number(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xffU);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at, bool big_endian) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * (big_endian ? 3 - i : i);
  return number;
}

// https://sqlite.org/fileformat2.html#checksum_algorithm
struct Checksum {
  bool big_endian;
  std::uint32_t s0 = 0;
  std::uint32_t s1 = 0;

  void add(std::string_view bytes) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      s0 += number_at(bytes, at, big_endian) + s1;
      s1 += number_at(bytes, at + 4, big_endian) + s0;
    }
  }
  void append_to(std::string& out) const {
    append_number(out, s0);
    append_number(out, s1);
  }
};

std::string log_of(const std::vector<Frame>& frames, std::uint32_t page_bytes, bool big_endian) {
  constexpr std::string_view salts = "saltSALT";
  std::string log;
  append_number(log, 0x377f0682U | (big_endian ? 1U : 0U));
  append_number(log, 3007000);
  append_number(log, page_bytes);
  append_number(log, 0);
  log += salts;
  Checksum checksum{big_endian};
  checksum.add(log);
  checksum.append_to(log);
  for (const Frame& frame : frames) {
    std::string header;
    append_number(header, frame.page);
    append_number(header, frame.commit);
    const std::string page(page_bytes, static_cast<char>(frame.page));
    checksum.add(header);
    checksum.add(page);
    log += header;
    log += salts;
    checksum.append_to(log);
    log += page;
  }
  return log;
}

// Returns the scan of all complete transactions among the first `whole` frames.
store::WalScan expected(const std::vector<Frame>& frames, std::size_t whole) {
  store::WalScan scan;
  std::size_t committed = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    if (frames[i].commit == 0) continue;
    scan.pages = frames[i].commit;
    committed = i + 1;
  }
  for (std::size_t i = 0; i < committed; ++i) scan.holds.insert(frames[i].page);
  return scan;
}

store::WalScan scan(const std::string& log) {
  static const test_support::TemporaryDirectory directory;
  const std::filesystem::path path = directory / "log";
  test_support::write_bytes(path, log);
  return store::scan_wal(path);
}

void require_equal(const store::WalScan& found, const store::WalScan& wanted) {
  require(found.pages == wanted.pages, "the size of the database is that of the last whole transaction");
  require(found.holds == wanted.holds, "the pages are those of whole transactions");
  require(found.damage == wanted.damage, "damage is what committed transactions follow");
}

std::vector<Frame> frames_from(FuzzedDataProvider& input) {
  std::vector<Frame> frames(input.ConsumeIntegralInRange<std::size_t>(0, 8));
  for (Frame& frame : frames) {
    frame.page = input.ConsumeBool() ? input.ConsumeIntegralInRange<std::uint32_t>(1, 20)
                                     : input.ConsumeIntegral<std::uint32_t>();
    frame.commit = input.ConsumeBool() ? input.ConsumeIntegral<std::uint32_t>() : 0;
  }
  return frames;
}

void check_known_log(FuzzedDataProvider& input) {
  const std::uint32_t page_bytes = 512U << input.ConsumeIntegralInRange(0, 3);
  const std::size_t frame_bytes = kFrameHeaderBytes + page_bytes;
  const std::vector<Frame> frames = frames_from(input);
  std::string log = log_of(frames, page_bytes, input.ConsumeBool());
  require_equal(scan(log), expected(frames, frames.size()));

  const auto at = input.ConsumeIntegralInRange<std::size_t>(0, log.size() - 1);
  const std::size_t whole = at < kHeaderBytes ? 0 : (at - kHeaderBytes) / frame_bytes;
  require_equal(scan(log.substr(0, at)), expected(frames, whole));

  log[at] ^= static_cast<char>(input.ConsumeIntegralInRange(1, 255));
  store::WalScan damaged = expected(frames, whole);
  if (at < kHeaderBytes) {
    if (!frames.empty()) damaged.damage = 0;
  } else if (std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(whole) + 1, frames.end(),
                         [](const Frame& frame) { return frame.commit != 0; })) {
    damaged.damage = kHeaderBytes + whole * frame_bytes;
  }
  require_equal(scan(log), damaged);
}

// Scans any bytes that follow a header with a correct checksum.
void check_any_log(FuzzedDataProvider& input) {
  std::string log = log_of({}, input.ConsumeIntegral<std::uint32_t>(), input.ConsumeBool());
  log += input.ConsumeRemainingBytesAsString();
  const store::WalScan found = scan(log);
  require(found.damage.value_or(0) <= log.size(), "damage lies in the log");
  require(found.holds.size() <= log.size() / kFrameHeaderBytes, "a frame holds one page");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  input.ConsumeBool() ? check_known_log(input) : check_any_log(input);
  return 0;
}
