// Names of functions by address, from the symbol table of an ELF file. Only this table has the functions that a
// program does not export, unless it is stripped.
#pragma once

#include <elf.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace cadre::engine::local {

class FunctionSymbols {
 public:
  struct Place {
    std::string function = {};  // mangled name
    std::uint64_t offset = 0;   // of the address from the start of the function
  };

  // Reads a file's symbols; has none if the file cannot be read or is not an ELF file of 64 bits and this byte order.
  explicit FunctionSymbols(const std::filesystem::path& file);

  // Returns the function at an address relative to the load address of the file; empty if unknown.
  std::optional<Place> find(std::uint64_t address) const;

 private:
  void load();
  std::string name_of(const Elf64_Sym& symbol) const;

  std::optional<base::ReadableFile> file_ = {};
  Elf64_Shdr names_ = {};
  std::vector<Elf64_Sym> symbols_ = {};
};

}  // namespace cadre::engine::local
