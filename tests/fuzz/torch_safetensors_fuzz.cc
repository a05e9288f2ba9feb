// Bytes are either no safetensors file or one whose tensors lie one after the other, and whose header survives a round
// trip.
#include "cadre/error.h"
#include "fuzz/require.h"
#include "torch/safetensors_header.h"

using namespace cadre;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string text(data, size);
  try {
    pt::SafetensorsHeader header = pt::read_safetensors_header(std::as_bytes(std::span(text)), "the file");
    std::size_t data_bytes = 0;
    for (const pt::StoredTensor& tensor : header.tensors) {
      require(header.size_bytes + tensor.offset + tensor.size_bytes <= size, "a tensor lies in the file");
      data_bytes += tensor.size_bytes;
    }
    require(header.size_bytes + data_bytes == size, "every byte belongs to one tensor");
    std::vector<pt::StoredTensor> tensors = header.tensors;
    const std::string again = pt::make_safetensors_header(tensors) + std::string(data_bytes, '.');
    require(pt::read_safetensors_header(std::as_bytes(std::span(again)), "it").tensors == tensors,
            "what was written is read as itself");
  } catch (const StorageError&) {
  }
  return 0;
}
