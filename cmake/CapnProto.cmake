# Cap'n Proto's libraries and C++ code from its schemas.
#
# Debian's CapnProtoConfig.cmake is not used: it asks for OpenSSL and pkg-config, which nothing here needs.
find_program(CADRE_CAPNP capnp REQUIRED)
find_path(CADRE_CAPNP_INCLUDE capnp/message.h REQUIRED)

# The libraries that use others come first.
add_library(cadre_capnp INTERFACE)
target_include_directories(cadre_capnp SYSTEM INTERFACE "${CADRE_CAPNP_INCLUDE}")
foreach(library capnp kj-async kj)
  find_library(CADRE_LIBRARY_${library} ${library} REQUIRED)
  target_link_libraries(cadre_capnp INTERFACE "${CADRE_LIBRARY_${library}}")
endforeach()

# cadre_generate_capnp(<output> <schema>...): sets <output> to the generated C++ files, which lie in
# build/<preset>/generated/ under the schema's path below src/. Their headers are included by that path.
function(cadre_generate_capnp output)
  set(sources)
  foreach(schema ${ARGN})
    file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}/src" "${schema}")
    set(source "${CMAKE_BINARY_DIR}/generated/${name}.c++")
    set(header "${CMAKE_BINARY_DIR}/generated/${name}.h")
    add_custom_command(OUTPUT "${source}" "${header}" DEPENDS "${schema}" VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory "${CMAKE_BINARY_DIR}/generated"
      COMMAND "${CADRE_CAPNP}" compile "--src-prefix=${CMAKE_SOURCE_DIR}/src"
              "-oc++:${CMAKE_BINARY_DIR}/generated" "${schema}")
    # Generated code is not ours to warn about, and Cap'n Proto 0.9.2 predates C++20's comparison rules.
    set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-w;-std=c++17")
    list(APPEND sources "${source}" "${header}")
  endforeach()
  set(${output} ${sources} PARENT_SCOPE)
endfunction()
