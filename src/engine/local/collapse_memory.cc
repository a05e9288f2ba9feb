#include "engine/local/collapse_memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace cadre::engine::local {
namespace {

constexpr std::uintptr_t huge_page_bytes = 2 << 20;
constexpr std::size_t most_pages = 512;  // 1 GiB: a program's sparse mappings must not fill the memory
constexpr long least_anonymous_kib = 16 << 10;

long anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

}  // namespace

void collapse_memory() {
  if (anonymous_kib() < least_anonymous_kib) return;
  std::size_t pages = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string permissions, offset, device, inode, name;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode >> name;
    if (permissions != "rw-p" || !(name.empty() || name == "[heap]")) continue;
    begin = (begin + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
    for (; begin + huge_page_bytes <= end && pages < most_pages; begin += huge_page_bytes, ++pages) {
      // An error affects only this page (never touched, or too little memory), or repeats quickly for every page.
      ::madvise(reinterpret_cast<void*>(begin), huge_page_bytes, MADV_COLLAPSE);
    }
  }
}

}  // namespace cadre::engine::local
