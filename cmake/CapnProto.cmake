# C++ code from Cap'n Proto's schemas.
find_program(CADRE_CAPNP capnp REQUIRED)

# cadre_generate_capnp(<output> <schema>...): sets <output> to the generated C++ files, which lie in
# build/<preset>/generated/ under the schema's path below src/. Their headers are included by that path.
function(cadre_generate_capnp output)
  set(generated "${PROJECT_BINARY_DIR}/generated")
  set(sources)
  foreach(schema ${ARGN})
    file(RELATIVE_PATH name "${PROJECT_SOURCE_DIR}/src" "${schema}")
    set(source "${generated}/${name}.c++")
    set(header "${generated}/${name}.h")
    add_custom_command(OUTPUT "${source}" "${header}" DEPENDS "${schema}" VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory "${generated}"
      COMMAND "${CADRE_CAPNP}" compile "--src-prefix=${PROJECT_SOURCE_DIR}/src" "-oc++:${generated}" "${schema}")
    # Generated code is not ours to warn about, and Cap'n Proto 0.9.2 predates C++20's comparison rules.
    set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-w;-std=c++17" SKIP_PRECOMPILE_HEADERS ON)
    list(APPEND sources "${source}" "${header}")
  endforeach()
  set(${output} ${sources} PARENT_SCOPE)
endfunction()
