// A pickle of any bytes is either refused or values that survive a round trip.
#include "torch/unpickler.h"

#include "cadre/error.h"
#include "fuzz/require.h"
#include "torch/pickler.h"

using namespace cadre;
using fuzz::require;

namespace {

constexpr std::size_t kLargestStorage = 1 << 20;

c10::Storage storage_of(const std::string&, std::size_t size_bytes) {
  if (size_bytes > kLargestStorage) throw StorageError("no record of this size");
  return torch::empty({static_cast<std::int64_t>(size_bytes)}, torch::kUInt8).storage();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  try {
    const pt::Value value = pt::unpickle({data, size}, "file", storage_of);
    const pt::Pickled written = pt::pickle(value);
    const pt::Value again = pt::unpickle(written.bytes, "what was written", [&](const std::string& key, std::size_t) {
      return written.storages.at(std::stoul(key));
    });
    require(pt::pickle(again).bytes == written.bytes, "what was read is written and read as itself");
  } catch (const StorageError&) {
  } catch (const InvalidArgument&) {  // values that programs never save, such as a type by its name
  }
  return 0;
}
