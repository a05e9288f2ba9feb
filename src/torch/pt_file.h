// Files of Python's torch.save (zip format): a pickle and the memory of its tensors.
#pragma once

#include <filesystem>

#include "torch/pickle_value.h"

namespace cadre::pt {

// Writes a value, replacing an existing file. Throws InvalidArgument (see pickler.h), and StorageError if the file
// cannot be written; an unusable part of it may remain.
void write_file(const std::filesystem::path& file, const Value& value);

// Reads a value. Its tensors are on the CPU and own their memory. Throws NotFound if there is no file, and
// StorageError with file and offset if it is damaged, truncated, or contains something that unpickler.h refuses.
Value read_file(const std::filesystem::path& file);

}  // namespace cadre::pt
