// Conversion of a pickle written by torch.save to values, without running code: the opcodes of pickle_opcode.h on
// plain data, and the few Python names that tensors need. Other names are refused, with the name in the message.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "torch/pickle_value.h"

namespace cadre::pt {

// Returns the memory "data/<key>" of a file, which must have exactly `size_bytes`.
using StorageLoader = std::function<c10::Storage(const std::string& key, std::size_t size_bytes)>;

// Throws StorageError "<file>, data.pkl offset <n>: ..." for anything unexpected, and the exceptions of
// `load_storage`. Limits: 64 levels of containers; tensors of 64 dimensions; 2^20 values and bytes of text plus 64 for
// each byte of the pickle, where shared values count each time they occur in the result.
Value unpickle(std::string_view bytes, const std::string& file, const StorageLoader& load_storage);

}  // namespace cadre::pt
