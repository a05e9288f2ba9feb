# Arrow's C++ libraries out of a Python wheel, the one distribution that is everywhere, as the imported targets cadre::arrow and
# cadre::arrow_dataset (with computing and Parquet). The wheel is
#   CADRE_ARROW_ROOT    the folder `pyarrow` of a wheel; else that of the wheel in
#   CADRE_VENV          this Python virtual environment; else in that of the environment variable
#   VIRTUAL_ENV         which is set where one is active.
#
# Sets cadre_arrow_fault to what is wrong, for a person, and makes no targets then; empty when all is well.

# The only version whose binary interface libcadre_object_storage.so and libcadre_data.a have.
set(CADRE_ARROW_VERSION 26.0.1)

# cadre_find_arrow(<root> <fault>): where the wheel is, and what is wrong with it.
function(cadre_find_arrow root fault)
  set(fault_text)
  set(path "${CADRE_ARROW_ROOT}")
  if(NOT path)
    set(venv "${CADRE_VENV}")
    if(NOT venv)
      set(venv "$ENV{VIRTUAL_ENV}")
    endif()
    file(GLOB path "${venv}/lib/python3*/site-packages/pyarrow")
  endif()
  set(version)
  if(EXISTS "${path}/include/arrow/util/config.h")
    file(STRINGS "${path}/include/arrow/util/config.h" version REGEX "define ARROW_VERSION_STRING ")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  endif()
  set(how "Say where it is with -DCADRE_VENV=<Python virtual environment that has the pyarrow wheel> or \
-DCADRE_ARROW_ROOT=<its folder pyarrow>.")
  if(NOT version)
    set(fault_text "No pyarrow ${CADRE_ARROW_VERSION} found (looked in ${path}${venv}). ${how}")
  elseif(NOT version VERSION_EQUAL CADRE_ARROW_VERSION)
    set(fault_text "${path} is Arrow ${version}; cadre::storage and cadre::data need ${CADRE_ARROW_VERSION}. ${how}")
  endif()
  set(${root} "${path}" PARENT_SCOPE)
  set(${fault} "${fault_text}" PARENT_SCOPE)
endfunction()

# cadre_import_arrow(<root>): makes the targets. The wheel has no names without a version for the linker.
function(cadre_import_arrow root)
  file(STRINGS "${root}/include/arrow/util/config.h" version REGEX "define ARROW_SO_VERSION ")
  string(REGEX MATCH "\"[0-9]+\"" version "${version}")
  string(REPLACE "\"" "" version "${version}")
  foreach(library arrow arrow_compute arrow_acero parquet arrow_dataset)
    add_library(cadre::${library} SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::${library} PROPERTIES IMPORTED_LOCATION "${root}/lib${library}.so.${version}"
      IMPORTED_SONAME "lib${library}.so.${version}")
    target_include_directories(cadre::${library} SYSTEM INTERFACE "${root}/include")
  endforeach()
  target_link_libraries(cadre::arrow_dataset INTERFACE
    cadre::arrow_acero cadre::parquet cadre::arrow_compute cadre::arrow)
endfunction()

set(cadre_arrow_fault)
if(NOT TARGET cadre::arrow)
  cadre_find_arrow(cadre_arrow_root cadre_arrow_fault)
  if(NOT cadre_arrow_fault)
    cadre_import_arrow("${cadre_arrow_root}")
  endif()
endif()
