# libtorch as the imported target cadre::libtorch: for Cadre's own build, and installed beside cadreConfig.cmake. It is
#   CADRE_TORCH_ROOT    the folder with include/ and lib/: `torch` of a Python wheel, or an unpacked libtorch; else the
#   CADRE_VENV          wheel in this Python virtual environment; else in that of the environment variable
#   VIRTUAL_ENV         which is set where one is active.
#
# Sets cadre_torch_fault to what is wrong, for a person, and makes no target then; empty when all is well.
#
# libtorch's own TorchConfig.cmake is not used: it asks for the CUDA toolkit when the wheel is a CUDA build, warns
# about a library that nobody needs, and adds search paths of the machine that the wheel was built on.

# The only version whose binary interface libcadre_torch.a has.
set(CADRE_TORCH_VERSION 2.13.0)

# cadre_find_torch(<root> <fault>): where libtorch is, and what is wrong with it.
function(cadre_find_torch root fault)
  set(fault_text)
  set(path "${CADRE_TORCH_ROOT}")
  if(NOT path)
    set(venv "${CADRE_VENV}")
    if(NOT venv)
      set(venv "$ENV{VIRTUAL_ENV}")
    endif()
    file(GLOB path "${venv}/lib/python3*/site-packages/torch")
  endif()
  set(version)
  foreach(file version.py build-version)  # of a wheel, of an unpacked libtorch
    if(NOT version AND EXISTS "${path}/${file}")
      file(STRINGS "${path}/${file}" version REGEX "^(__version__ = ')?[0-9]+\\.[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
    endif()
  endforeach()
  set(how "Say where it is with -DCADRE_VENV=<Python virtual environment that has the torch wheel> or \
-DCADRE_TORCH_ROOT=<folder with torch's include/ and lib/>.")
  if(NOT path OR NOT EXISTS "${path}/lib/libtorch_cpu.so")
    set(where "${CADRE_TORCH_ROOT}${venv}")
    if(NOT where)
      set(where "nowhere: neither CADRE_TORCH_ROOT nor CADRE_VENV is set, and no virtual environment is active")
    endif()
    set(fault_text "No torch ${CADRE_TORCH_VERSION} found (looked in ${where}). ${how}")
  elseif(NOT version VERSION_EQUAL CADRE_TORCH_VERSION)
    set(fault_text "${path} is torch ${version}; cadre::torch needs ${CADRE_TORCH_VERSION}. ${how}")
  endif()
  set(${root} "${path}" PARENT_SCOPE)
  set(${fault} "${fault_text}" PARENT_SCOPE)
endfunction()

# cadre_import_torch_cuda(<root>): what a CUDA build of libtorch has beside the rest. Where there are also the headers of
# CUDA and NCCL, of their wheels or of the system, Cadre's process groups can use NCCL.
function(cadre_import_torch_cuda root)
  # CUDA's own libraries lie in wheels of their own, which the loader finds and the linker need not.
  target_link_options(cadre::libtorch INTERFACE -Wl,--allow-shlib-undefined)
  foreach(library torch_cuda c10_cuda)
    add_library(cadre::lib${library}_so SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::lib${library}_so PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${library}.so")
    target_link_libraries(cadre::libtorch INTERFACE cadre::lib${library}_so)
  endforeach()
  file(GLOB folders "${root}/../nvidia/*/include")
  find_path(CADRE_CUDA_INCLUDE cuda_runtime_api.h HINTS ${folders} /usr/local/cuda/include)
  find_path(CADRE_NCCL_INCLUDE nccl.h HINTS ${folders} /usr/local/cuda/include)
  mark_as_advanced(CADRE_CUDA_INCLUDE CADRE_NCCL_INCLUDE)
  if(CADRE_CUDA_INCLUDE AND CADRE_NCCL_INCLUDE)
    target_include_directories(cadre::libtorch SYSTEM INTERFACE "${CADRE_CUDA_INCLUDE}" "${CADRE_NCCL_INCLUDE}")
    target_compile_definitions(cadre::libtorch INTERFACE USE_C10D_NCCL)
  endif()
endfunction()

# cadre_import_torch(<root>): makes the target.
function(cadre_import_torch root)
  add_library(cadre::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(cadre::libtorch SYSTEM INTERFACE
    "${root}/include" "${root}/include/torch/csrc/api/include")
  target_compile_definitions(cadre::libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  foreach(library torch torch_cpu c10)
    add_library(cadre::lib${library}_so SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::lib${library}_so PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${library}.so")
    target_link_libraries(cadre::libtorch INTERFACE cadre::lib${library}_so)
  endforeach()
  if(EXISTS "${root}/lib/libtorch_cuda.so")
    cadre_import_torch_cuda("${root}")
  endif()
endfunction()

set(cadre_torch_fault)
if(NOT TARGET cadre::libtorch)
  cadre_find_torch(cadre_torch_root cadre_torch_fault)
  if(NOT cadre_torch_fault)
    cadre_import_torch("${cadre_torch_root}")
  endif()
endif()
