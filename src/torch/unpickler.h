// A pickle that torch.save wrote, to values, without running anything: the operations of pickle_opcode.h on plain data,
// and the few Python names that tensors need. Everything else is refused by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "torch/pickle_value.h"

namespace cadre::pt {

// Finds the memory "data/<key>" of a file, which must have exactly `size_bytes`.
using StorageLoader = std::function<c10::Storage(const std::string& key, std::size_t size_bytes)>;

// Throws StorageError "<file>, data.pkl offset <n>: ..." for anything unexpected, and what `load_storage` throws.
// Limits: 64 levels of containers, tensors of 64 dimensions; and values and bytes of text, each counted as often as the
// result has it, up to a million and 64 for each byte of the pickle.
Value unpickle(std::string_view bytes, const std::string& file, const StorageLoader& load_storage);

}  // namespace cadre::pt
