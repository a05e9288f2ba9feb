# Arrow's C++ libraries out of a Python wheel, the one distribution that is everywhere, as the imported targets cadre::arrow and
# cadre::arrow_dataset (with computing and Parquet). The wheel is
#   CADRE_ARROW_ROOT    the folder `pyarrow` of a wheel; else that of the wheel in
#   CADRE_VENV          this Python virtual environment; else in that of the environment variable
#   VIRTUAL_ENV         which is set where one is active. A wheel of Cadre's is built with that of its build environment.
#
# Sets
#   cadre_arrow_fault     what is wrong, for a person, and makes no targets then; empty when all is well
#   CADRE_ARROW_VERSION   such as 26.0.1
#
# An installed libcadre_data.a has a record of its version beside this file, cadreArrowBuild.cmake: no other will do. Where
# Cadre is built from sources, any version of CADRE_ARROW_MAJORS will do.

include("${CMAKE_CURRENT_LIST_DIR}/VirtualEnvironment.cmake")

# The versions of Arrow that the sources build with; `make test-versions` tries them.
set(CADRE_ARROW_MAJORS 26 25)

set(cadre_arrow_built_version)
include("${CMAKE_CURRENT_LIST_DIR}/cadreArrowBuild.cmake" OPTIONAL)

# cadre_find_arrow(<root> <version> <fault>): where the wheel is, which one, and what is wrong with it.
function(cadre_find_arrow root version fault)
  set(fault_text)
  set(path "${CADRE_ARROW_ROOT}")
  if(NOT path AND SKBUILD)
    execute_process(COMMAND "${Python_EXECUTABLE}" -c "import pyarrow; print(pyarrow.__path__[0])" OUTPUT_VARIABLE path
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT path)
    cadre_find_in_venv(pyarrow path venv)
  endif()
  set(found_version)
  if(EXISTS "${path}/include/arrow/util/config.h")
    file(STRINGS "${path}/include/arrow/util/config.h" found_version REGEX "define ARROW_VERSION_STRING ")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" found_version "${found_version}")
  endif()
  string(REGEX MATCH "^[0-9]+" major "${found_version}")
  set(wanted "${cadre_arrow_built_version}")
  if(NOT wanted)
    list(JOIN CADRE_ARROW_MAJORS " or " wanted)
  endif()
  set(how "Say where it is with -DCADRE_VENV=<Python virtual environment that has the pyarrow wheel> or \
-DCADRE_ARROW_ROOT=<its folder pyarrow>.")
  if(NOT found_version)
    set(fault_text "No pyarrow ${wanted} found (looked in ${path}${venv}). ${how}")
  elseif(cadre_arrow_built_version AND NOT found_version VERSION_EQUAL cadre_arrow_built_version)
    set(fault_text "${path} is Arrow ${found_version}; this cadre::data was built for ${wanted}, whose binary interface is \
another one. ${how}")
  elseif(NOT cadre_arrow_built_version AND NOT major IN_LIST CADRE_ARROW_MAJORS)
    set(fault_text "${path} is Arrow ${found_version}; cadre::storage and cadre::data need ${wanted}. ${how}")
  endif()
  set(${root} "${path}" PARENT_SCOPE)
  set(${version} "${found_version}" PARENT_SCOPE)
  set(${fault} "${fault_text}" PARENT_SCOPE)
endfunction()

# cadre_import_arrow(<root>): makes the targets. The wheel has no names without a version for the linker.
function(cadre_import_arrow root)
  file(STRINGS "${root}/include/arrow/util/config.h" version REGEX "define ARROW_SO_VERSION ")
  string(REGEX MATCH "\"[0-9]+\"" version "${version}")
  string(REPLACE "\"" "" version "${version}")
  set(libraries arrow arrow_compute arrow_acero parquet arrow_dataset)
  if(EXISTS "${root}/libarrow_s3.so.${version}")
    list(APPEND libraries arrow_s3)
  else()
    add_library(cadre::arrow_s3 INTERFACE IMPORTED GLOBAL)  # it has S3 in libarrow.so
  endif()
  foreach(library IN LISTS libraries)
    add_library(cadre::${library} SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::${library} PROPERTIES IMPORTED_LOCATION "${root}/lib${library}.so.${version}"
      IMPORTED_SONAME "lib${library}.so.${version}")
    target_include_directories(cadre::${library} SYSTEM INTERFACE "${root}/include")
  endforeach()
  target_link_libraries(cadre::arrow_s3 INTERFACE cadre::arrow)
  target_link_libraries(cadre::arrow_dataset INTERFACE
    cadre::arrow_acero cadre::parquet cadre::arrow_compute cadre::arrow)
endfunction()

cadre_find_arrow(cadre_arrow_root CADRE_ARROW_VERSION cadre_arrow_fault)
if(NOT cadre_arrow_fault AND NOT TARGET cadre::arrow)
  cadre_import_arrow("${cadre_arrow_root}")
endif()
