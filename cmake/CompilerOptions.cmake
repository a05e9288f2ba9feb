# One set of flags for everything that Cadre compiles; cadre_warnings adds the warnings to our own targets. All of it
# ends with Cadre's folders: a project that Cadre is a part of keeps its own flags.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
endif()

# -fPIC for programs too: a precompiled header of a -fPIC target is silently ignored in -fPIE programs by g++.
add_compile_options(-fPIC -Winvalid-pch)

if(CADRE_SANITIZER)
  add_compile_options(-fsanitize=${CADRE_SANITIZER} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CADRE_SANITIZER})
  if(CADRE_SANITIZER MATCHES undefined)
    # vptr checks need the type information of libtorch's hidden classes.
    add_compile_options(-fno-sanitize=vptr -fno-sanitize-recover=undefined)
    add_link_options(-fno-sanitize=vptr)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      add_compile_options("-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/sanitizer-ignorelist.txt")
    endif()
  endif()
endif()

if(CADRE_COVERAGE)
  # The counters lie in the file itself, which all processes of a program share: most workers end without an exit.
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation=true")
  add_link_options(-fprofile-instr-generate)
endif()

find_program(CADRE_CCACHE ccache)
if(CADRE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The "sloppiness" is what ccache asks for with precompiled headers. Paths in the checkout are relative ones, so that a
  # wheel is made of what the release was made of.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CADRE_CCACHE})
endif()

add_library(cadre_warnings INTERFACE)
target_compile_options(cadre_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wundef
  $<$<BOOL:${CADRE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses its own deprecated get_temporary_buffer in std::stable_sort.
  target_compile_options(cadre_warnings INTERFACE -Wno-deprecated-declarations)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these in its own std::string and std::optional.
  target_compile_options(cadre_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
    -Wno-array-bounds)
  # Files that are compiled in groups look like headers to g++.
  target_compile_options(cadre_warnings INTERFACE -Wno-subobject-linkage)
endif()
