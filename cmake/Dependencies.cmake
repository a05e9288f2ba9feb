# The libraries that libcadre_tune.a is linked with, as imported targets: for Cadre's own build, and installed beside
# cadreConfig.cmake for the projects that link the archive.
#
# Sets cadre_missing_packages to the Debian packages of what is not there: empty when nothing is missing.
set(cadre_missing_packages)

# cadre_import(<target> <Debian package> <header> <library>...): an imported target for libraries that have no CMake
# package. The libraries that use others come first.
function(cadre_import target package header)
  string(REPLACE "cadre::" "CADRE_INCLUDE_" include_variable ${target})
  find_path(${include_variable} ${header})
  mark_as_advanced(${include_variable})
  set(found "${${include_variable}}")
  foreach(library ${ARGN})
    find_library(CADRE_LIBRARY_${library} ${library})
    mark_as_advanced(CADRE_LIBRARY_${library})
    list(APPEND found "${CADRE_LIBRARY_${library}}")
  endforeach()
  if("NOTFOUND" IN_LIST found OR found MATCHES "-NOTFOUND")
    set(cadre_missing_packages ${cadre_missing_packages} ${package} PARENT_SCOPE)
  elseif(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED)
    target_include_directories(${target} SYSTEM INTERFACE "${${include_variable}}")
    foreach(library ${ARGN})
      target_link_libraries(${target} INTERFACE "${CADRE_LIBRARY_${library}}")
    endforeach()
  endif()
endfunction()

find_package(Threads QUIET)
if(NOT Threads_FOUND)
  list(APPEND cadre_missing_packages libc6-dev)
endif()
find_package(SQLite3 QUIET)
if(NOT SQLite3_FOUND)
  list(APPEND cadre_missing_packages libsqlite3-dev)
endif()
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  list(APPEND cadre_missing_packages libfmt-dev)
endif()
cadre_import(cadre::xxhash libxxhash-dev xxhash.h xxhash)
cadre_import(cadre::nlopt libnlopt-dev nlopt.h nlopt)
# Debian's CapnProtoConfig.cmake is not used: it asks for OpenSSL and pkg-config, which nothing here needs.
cadre_import(cadre::capnp libcapnp-dev capnp/message.h capnp kj-async kj)
