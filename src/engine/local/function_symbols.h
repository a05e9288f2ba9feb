// Names of functions by their addresses, from the symbol table of an ELF file. Functions that a program does not export
// are there only, as long as it is not stripped.
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
    std::string function = {};  // as the linker has it: not demangled
    std::uint64_t offset = 0;   // of the address in the function
  };

  // Takes any file; one that cannot be read, or is no ELF file of 64 bits and this byte order, has no symbols.
  explicit FunctionSymbols(const std::filesystem::path& file);

  // The function at an address relative to where the file is loaded; empty where the file does not say.
  std::optional<Place> find(std::uint64_t address) const;

 private:
  void load();
  std::string name_of(const Elf64_Sym& symbol) const;

  std::optional<base::ReadableFile> file_ = {};
  Elf64_Shdr names_ = {};
  std::vector<Elf64_Sym> symbols_ = {};
};

}  // namespace cadre::engine::local
