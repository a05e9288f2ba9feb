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

# cadre_arrow_module(<name> <source>...): a library that is loaded by the first process that needs it, with Cadre's core.
# Installed, it has Arrow in its own folder; in the wheel, it finds Arrow in that of the wheel pyarrow, which is installed
# beside the package, or is loaded already (src/storage/arrow_module.h).
function(cadre_arrow_module name)
  add_library(${name} MODULE ${ARGN})
  # Nothing of what it is linked with may be taken for the program's own.
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden CADRE_IS_INSTALLED ON INSTALL_RPATH "$ORIGIN")
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:--as-needed)
  target_link_libraries(${name} PRIVATE cadre_private cadre_warnings $<IF:$<BOOL:${CADRE_SHARED}>,cadre_tune_shared,cadre_tune>)
  if(CADRE_SHARED)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../pyarrow"
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python/cadre/lib")
  elseif(TARGET cadre_tune_shared)  # that of the Python package in the build folder
    target_link_options(cadre_tune_shared PRIVATE "LINKER:-rpath,$<TARGET_FILE_DIR:${name}>")
  endif()
endfunction()
