#include "base/name.h"

#include <gtest/gtest.h>

namespace cadre::base {
namespace {

TEST(FileName, PlainNamesHaveNoFault) {
  for (const char* name : {"pbt_mnist", "run 3", "a.b", "x=0.1,y=2", "\xc3\xa9t\xc3\xa9"})
    EXPECT_EQ(fault_of_file_name(name), "") << name;
}

TEST(FileName, WhatCouldLeaveTheDirectoryOrConfuseAShellIsRefused) {
  using namespace std::string_view_literals;
  for (const std::string_view name :
       {""sv, "."sv, ".."sv, "../x"sv, "a/b"sv, "/etc"sv, "a\nb"sv, "a\0b"sv, "-rf"sv, "\x7f"sv})
    EXPECT_NE(fault_of_file_name(name), "") << name;
  EXPECT_NE(fault_of_file_name(std::string(256, 'x')), "");
}

TEST(FileName, UnsafeCharactersAreReplacedAndLengthIsKept) {
  EXPECT_EQ(safe_file_name("a/b c$(x)", 100), "a_b_c__x_");
  EXPECT_EQ(safe_file_name("abcdef", 3), "abc");
}

}  // namespace
}  // namespace cadre::base
