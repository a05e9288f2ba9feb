// The opcodes of Python's pickle protocols 2 to 4 that occur in files of tensors. Names and meaning: Python's
// Lib/pickletools.py.
#pragma once

#include <cstdint>

namespace cadre::pt {

enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  none = 'N',
  bin_pers_id = 'Q',
  reduce = 'R',
  bin_unicode = 'X',
  append = 'a',
  appends = 'e',
  build = 'b',
  global = 'c',
  bin_get = 'h',
  long_bin_get = 'j',
  bin_put = 'q',
  long_bin_put = 'r',
  set_item = 's',
  tuple = 't',
  set_items = 'u',
  bin_float = 'G',
  empty_list = ']',
  empty_dict = '}',
  empty_tuple = ')',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  new_true = 0x88,
  new_false = 0x89,
  long1 = 0x8a,
  short_bin_unicode = 0x8c,
  bin_unicode8 = 0x8d,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
};

}  // namespace cadre::pt
