// Objects as files of an experiment: `objects/<id>` in its directory. docs/formats.md describes them.
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
// Of references to objects.
inline constexpr const char* kObjectKind = "object";

// Bytes for those that take text.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The id of an object with these contents: "<hash of 32 hexadecimal digits>-<size>".
std::string object_id(std::string_view hash, std::size_t size);
// The size that an id says; empty where it is none. Ids come out of files and messages, and become names of files.
std::optional<std::size_t> size_of_object(std::string_view id);

// Where an experiment in `directory` has an object.
std::filesystem::path object_path(const std::filesystem::path& directory, std::string_view id);

// Why the file is not the object, empty where it is: it is not there, is no file, or has another size; with `contents`
// also whether they are those that its id names.
std::string fault_of_object(const std::filesystem::path& path, std::string_view id, bool contents);

// Maps an object's file. Throws NotFound, with id and path, where there is none, and StorageError where it has another
// size or cannot be mapped.
std::shared_ptr<const base::MemoryMap> map_object(const std::filesystem::path& path, std::string_view id);

// Makes the file of an object in an experiment's directory, where it is not there already, so that it survives a loss
// of power: it has its name when it is whole. Throws StorageError where `bytes` are not what the id names, OutOfSpace
// where the disk is full; there is no file then.
void write_object(const std::filesystem::path& directory, std::string_view id, std::span<const std::byte> bytes);

}  // namespace cadre::store
