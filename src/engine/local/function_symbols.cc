#include "engine/local/function_symbols.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "cadre/error.h"

namespace cadre::engine::local {
namespace {

constexpr std::size_t kMostSymbols = std::size_t{1} << 20;
constexpr std::size_t kMostSections = 1 << 16;
constexpr std::size_t kLongestSymbol = 4096;

// Reads `count` values of T at `offset`; fewer if the file ends before.
template <class T>
std::vector<T> read_values(const base::ReadableFile& file, std::uint64_t offset, std::size_t count) {
  const std::uint64_t left = file.size() - std::min(file.size(), offset);
  std::vector<T> values(std::min<std::uint64_t>(count, left / sizeof(T)));
  values.resize(file.read(offset, std::as_writable_bytes(std::span(values))) / sizeof(T));
  return values;
}

bool is_known_elf(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == (std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB) &&
         header.e_shentsize == sizeof(Elf64_Shdr);
}

bool contains(const Elf64_Sym& symbol, std::uint64_t address) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && address >= symbol.st_value &&
         address - symbol.st_value < symbol.st_size;
}

}  // namespace

FunctionSymbols::FunctionSymbols(const std::filesystem::path& file) {
  try {
    file_ = base::ReadableFile::open(file, base::ReadableFile::Links::follow);
    if (file_) load();
  } catch (const StorageError&) {
    symbols_.clear();
  }
}

void FunctionSymbols::load() {
  const std::vector<Elf64_Ehdr> header = read_values<Elf64_Ehdr>(*file_, 0, 1);
  if (header.empty() || !is_known_elf(header[0])) return;
  const std::vector<Elf64_Shdr> sections =
      read_values<Elf64_Shdr>(*file_, header[0].e_shoff, std::min<std::size_t>(header[0].e_shnum, kMostSections));
  const auto table = std::ranges::find(sections, Elf64_Word{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
  if (table == sections.end() || table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= sections.size()) return;
  names_ = sections[table->sh_link];
  symbols_ = read_values<Elf64_Sym>(*file_, table->sh_offset,
                                    std::min<std::uint64_t>(table->sh_size / sizeof(Elf64_Sym), kMostSymbols));
}

std::optional<FunctionSymbols::Place> FunctionSymbols::find(std::uint64_t address) const {
  const auto found = std::ranges::find_if(symbols_, [&](const Elf64_Sym& symbol) { return contains(symbol, address); });
  if (found == symbols_.end()) return std::nullopt;
  try {
    return Place{name_of(*found), address - found->st_value};
  } catch (const StorageError&) {
    return std::nullopt;
  }
}

std::string FunctionSymbols::name_of(const Elf64_Sym& symbol) const {
  if (symbol.st_name >= names_.sh_size) return {};
  const std::vector<char> bytes =
      read_values<char>(*file_, names_.sh_offset + symbol.st_name,
                        std::min<std::uint64_t>(names_.sh_size - symbol.st_name, kLongestSymbol));
  return {bytes.begin(), std::ranges::find(bytes, '\0')};
}

}  // namespace cadre::engine::local
