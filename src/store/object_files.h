// Files of objects: `objects/<id>` in an experiment's directory. docs/formats.md describes them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/memory_map.h"

namespace cadre::store {

inline constexpr const char* kObjectsDirectory = "objects";
// Kind of a Reference to an object.
inline constexpr const char* kObjectKind = "object";

// Views the bytes as text, without a copy.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the id of an object, "<hash>-<size>", from the hash of its contents (32 hexadecimal digits) and their size.
std::string object_id(std::string_view hash, std::size_t size);
// Returns the size in an id; empty if it is not an id. Checks every character, because ids come from files and messages
// and become file names.
std::optional<std::size_t> size_of_object(std::string_view id);

// Returns the path of an object's file in an experiment's `directory`.
std::filesystem::path object_path(const std::filesystem::path& directory, std::string_view id);

// Returns why the file is not the object: it is missing, not a regular file, or has another size. With `contents`, also
// checks that its contents match the id. Empty if there is no fault.
std::string fault_of_object(const std::filesystem::path& path, std::string_view id, bool contents);

// Maps an object's file. Throws NotFound, with id and path, if there is none, and StorageError if it has another size
// or cannot be mapped.
std::shared_ptr<const base::MemoryMap> map_object(const std::filesystem::path& path, std::string_view id);

// Writes an object's file into an experiment's directory, unless it exists already, and syncs it. The file gets its
// name only when it is complete. Throws StorageError if `bytes` do not match the id, OutOfSpace if the disk is full;
// there is no file then.
void write_object(const std::filesystem::path& directory, std::string_view id, std::span<const std::byte> bytes);

}  // namespace cadre::store
