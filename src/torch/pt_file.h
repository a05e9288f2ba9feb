// Files of Python's torch.save (zip format): a pickle and the memory of its tensors.
#pragma once

#include <filesystem>

#include "torch/pickle_value.h"

namespace cadre::pt {

// Writes a value; an existing file is replaced. Throws InvalidArgument (see pickler.h), StorageError when the file
// cannot be written; what is left of it is then of no use.
void write_file(const std::filesystem::path& file, const Value& value);

// Reads a value. Its tensors lie on the CPU and own their memory. Throws NotFound where there is no file, StorageError
// with file and offset where it is damaged, cut, or holds what unpickler.h refuses.
Value read_file(const std::filesystem::path& file);

}  // namespace cadre::pt
