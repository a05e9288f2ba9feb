# How programs are made: their sources, warnings, and libtorch with the shared precompiled header where asked for.

# What code inside the checkout (tests, benchmarks) may include beside the public headers: src/ and generated code.
add_library(cadre_private INTERFACE)
target_include_directories(cadre_private INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")

# Adds libtorch and the one precompiled header to a target.
function(cadre_use_torch target)
  target_link_libraries(${target} PRIVATE cadre::torch)
  target_precompile_headers(${target} REUSE_FROM cadre_torch_pch)
endfunction()

# cadre_program(<name> [TORCH] SOURCES <file>... [LIBRARIES <library>...])
# Does nothing when there are no sources, or when it needs libtorch and CADRE_TORCH is off.
function(cadre_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LIBRARIES")
  if(NOT arg_SOURCES OR (arg_TORCH AND NOT CADRE_TORCH))
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cadre_warnings ${arg_LIBRARIES} $<IF:$<BOOL:${CADRE_SHARED}>,cadre_tune_shared,cadre::tune>)
  if(arg_TORCH)
    cadre_use_torch(${name})
  endif()
endfunction()
