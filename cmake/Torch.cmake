# libtorch as the imported target cadre::libtorch: for Cadre's own build, and installed beside cadreConfig.cmake. It is
#   CADRE_TORCH_ROOT    the folder with include/ and lib/: `torch` of a Python wheel, or an unpacked libtorch; the one that
#                       the project has found with find_package(Torch) before, if it has; else the wheel in
#   CADRE_VENV          this Python virtual environment; else in that of the environment variable
#   VIRTUAL_ENV         which is set where one is active; else the wheel beside that of Cadre.
#
# A CUDA build of libtorch takes the headers of CUDA and NCCL from the wheels beside it, and what these lack from a
# toolkit of the same major version. It is
#   CUDAToolkit_ROOT    this folder, a variable of CMake's or of the environment; else one of the environment's
#   CUDA_HOME, CUDA_PATH; else that of the nvcc in PATH; else /usr/local/cuda, or Debian's in /usr.
#
# Sets
#   cadre_torch_fault     what is wrong, for a person, and makes no target then; empty when all is well
#   CADRE_TORCH_VERSION   such as 2.13.0
#   cadre_torch_kind      cpu, or a build for CUDA such as cu130
#   cadre_torch_nccl      the version of NCCL that cadre::libtorch has the headers of; empty: it goes without NCCL
#
#   cadre_torch_from_sources  true where cadre::torch is to be compiled with this libtorch
#
# An installed libcadre_torch.a has a record of the first three beside this file, cadreTorchBuild.cmake. With that version
# of torch the archive is used, and another kind is warned about. With another version of CADRE_TORCH_MINORS the project
# compiles the installed sources; with any version where it sets
#   CADRE_TORCH_FROM_SOURCES  to ON.
#
# libtorch's own TorchConfig.cmake is not used: it asks for the CUDA toolkit when the wheel is a CUDA build, warns
# about a library that nobody needs, and adds search paths of the machine that the wheel was built on.

include("${CMAKE_CURRENT_LIST_DIR}/VirtualEnvironment.cmake")

# The versions of torch that the sources build with; `make test-versions` tries them.
set(CADRE_TORCH_MINORS 2.11 2.12 2.13 2.14 2.15)

set(cadre_torch_built_version)
if(NOT CADRE_TORCH_FROM_SOURCES)
  include("${CMAKE_CURRENT_LIST_DIR}/cadreTorchBuild.cmake" OPTIONAL)
endif()

# cadre_read_torch_version(<folder> <version> <kind>): of a wheel or of an unpacked libtorch; empty: it is none.
function(cadre_read_torch_version path version kind)
  set(text)
  foreach(file version.py build-version)  # of a wheel, of an unpacked libtorch
    if(NOT text AND EXISTS "${path}/${file}")
      file(STRINGS "${path}/${file}" text REGEX "^(__version__ = ')?[0-9]+\\.[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
      # Another build of torch in the same place is another configuration.
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}/${file}")
    endif()
  endforeach()
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" found "${text}")
  set(found_kind cpu)
  if(EXISTS "${path}/lib/libtorch_cuda.so")
    set(found_kind cuda)  # some build for CUDA that does not say for which
    if(text MATCHES "\\+(cu[0-9]+)")
      set(found_kind "${CMAKE_MATCH_1}")
    endif()
  endif()
  set(${version} "${found}" PARENT_SCOPE)
  set(${kind} "${found_kind}" PARENT_SCOPE)
endfunction()

# cadre_check_found_torch(<fault>): a program has one libtorch.
function(cadre_check_found_torch fault)
  if(CADRE_TORCH_ROOT)
    file(REAL_PATH "${CADRE_TORCH_ROOT}" named)
    file(REAL_PATH "${TORCH_INSTALL_PREFIX}" found)
    if(NOT named STREQUAL found)
      set(${fault} "The project uses two libtorches: find_package(Torch) has found ${found}, and CADRE_TORCH_ROOT names \
${named}. Leave CADRE_TORCH_ROOT out, or name the same." PARENT_SCOPE)
    endif()
  endif()
endfunction()

# cadre_find_torch(<root> <version> <kind> <fault>): where libtorch is, which one, and what is wrong with it.
function(cadre_find_torch root version kind fault)
  set(fault_text)
  set(path "${CADRE_TORCH_ROOT}")
  if(TORCH_FOUND AND TORCH_INSTALL_PREFIX)  # what TorchConfig.cmake sets
    cadre_check_found_torch(fault_text)
    set(path "${TORCH_INSTALL_PREFIX}")
  endif()
  if(NOT path)
    cadre_find_in_venv(torch path venv)
    set(beside "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../../../torch")  # where Cadre is a Python wheel
    if(NOT path AND EXISTS "${beside}/lib/libtorch_cpu.so")
      file(REAL_PATH "${beside}" path)
    endif()
  endif()
  cadre_read_torch_version("${path}" found_version found_kind)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor "${found_version}")
  set(how "Say where it is with -DCADRE_VENV=<Python virtual environment that has the torch wheel> or \
-DCADRE_TORCH_ROOT=<folder with torch's include/ and lib/>.")
  set(wanted "${cadre_torch_built_version}")
  if(NOT wanted)
    list(JOIN CADRE_TORCH_MINORS " or " wanted)
  endif()
  if(fault_text)
    # said already
  elseif(NOT path OR NOT EXISTS "${path}/lib/libtorch_cpu.so")
    set(where "${CADRE_TORCH_ROOT}${venv}")
    if(NOT where)
      set(where "nowhere: neither CADRE_TORCH_ROOT nor CADRE_VENV is set, and no virtual environment is active")
    endif()
    set(fault_text "No torch ${wanted} found (looked in ${where}). ${how}")
  elseif(NOT minor IN_LIST CADRE_TORCH_MINORS)
    list(JOIN CADRE_TORCH_MINORS " or " minors)
    set(fault_text "${path} is torch ${found_version}; cadre::torch needs ${minors}. ${how}")
  endif()
  set(${root} "${path}" PARENT_SCOPE)
  set(${version} "${found_version}" PARENT_SCOPE)
  set(${kind} "${found_kind}" PARENT_SCOPE)
  set(${fault} "${fault_text}" PARENT_SCOPE)
endfunction()

# cadre_cuda_toolkit(<CUDA's major version> <folders>): the folders with headers of the first CUDA toolkit of that version
# (any, if empty), in the order that is said at the top.
function(cadre_cuda_toolkit major folders)
  set(roots "${CUDAToolkit_ROOT}" "$ENV{CUDAToolkit_ROOT}" "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}")
  unset(nvcc)
  find_program(nvcc nvcc NO_CACHE)
  if(nvcc)
    file(REAL_PATH "${nvcc}" nvcc)
    cmake_path(GET nvcc PARENT_PATH bin)
    cmake_path(GET bin PARENT_PATH toolkit)
    list(APPEND roots "${toolkit}")
  endif()
  list(APPEND roots /usr/local/cuda /usr/lib/cuda /usr)
  set(${folders} PARENT_SCOPE)
  foreach(toolkit IN LISTS roots)
    # targets/: an unpacked toolkit of which only a part is installed, or one for other processors.
    foreach(include "${toolkit}/include" "${toolkit}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include")
      if(toolkit AND EXISTS "${include}/cuda_runtime_api.h")
        file(STRINGS "${include}/cuda_runtime_api.h" line REGEX "define CUDART_VERSION +[0-9]+" LIMIT_COUNT 1)
        string(REGEX MATCH "[0-9]+" number "${line}")
        math(EXPR found_major "${number} / 1000")
        if(NOT major OR found_major EQUAL major)
          set(${folders} "${include}" "${include}/cccl" PARENT_SCOPE)  # since 13 nv/target lies in cccl/
          return()
        endif()
      endif()
    endforeach()
  endforeach()
endfunction()

# cadre_cuda_include_folders(<root> <kind> <folders>): where the headers of CUDA and NCCL are, the wheels' first.
function(cadre_cuda_include_folders root kind folders)
  set(major)
  if(kind MATCHES "^cu([0-9]+)[0-9]$")
    set(major "${CMAKE_MATCH_1}")
  endif()
  file(GLOB found LIST_DIRECTORIES TRUE "${root}/../nvidia/*/include" "${root}/../nvidia/cu*/include/cccl")
  cadre_cuda_toolkit("${major}" toolkit)
  list(APPEND found ${toolkit})
  set(existing)
  foreach(folder IN LISTS found)
    if(IS_DIRECTORY "${folder}")
      file(REAL_PATH "${folder}" folder)
      list(APPEND existing "${folder}")
    endif()
  endforeach()
  unset(nccl)
  find_path(nccl nccl.h HINTS ${existing} NO_CACHE)
  if(nccl)
    list(APPEND existing "${nccl}")
  endif()
  list(REMOVE_DUPLICATES existing)
  set(${folders} "${existing}" PARENT_SCOPE)
endfunction()

# cadre_read_nccl_version(<folders> <version>): of the first nccl.h there; empty: there is none.
function(cadre_read_nccl_version folders version)
  set(numbers)
  unset(header)
  find_file(header nccl.h PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
  if(header)
    foreach(part MAJOR MINOR PATCH)
      file(STRINGS "${header}" line REGEX "define NCCL_${part} +[0-9]+" LIMIT_COUNT 1)
      string(REGEX MATCH "[0-9]+" number "${line}")
      list(APPEND numbers "${number}")
    endforeach()
  endif()
  list(JOIN numbers "." numbers)
  set(${version} "${numbers}" PARENT_SCOPE)
endfunction()

# cadre_missing_cuda_headers(<root> <folders> <missing> <how>): which headers are not there, and how to get them.
function(cadre_missing_cuda_headers root folders missing how)
  set(names)
  set(extras)
  # Each header, and the name of its wheel among the extras of the package cuda-toolkit.
  foreach(pair cuda_runtime_api.h=cudart crt/host_config.h=crt nv/target=cccl cublas_v2.h=cublas cusparse.h=cusparse
          cusolverDn.h=cusolver nccl.h=)
    string(REGEX MATCH "^(.*)=(.*)$" pair "${pair}")
    set(name "${CMAKE_MATCH_1}")
    set(extra "${CMAKE_MATCH_2}")
    unset(header)
    find_file(header "${name}" PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
    if(NOT header)
      list(APPEND names "${name}")
      list(APPEND extras ${extra})
    endif()
  endforeach()
  set(commands)
  file(GLOB toolkit "${root}/../cuda_toolkit-*.dist-info")
  if(extras AND toolkit MATCHES "cuda_toolkit-([0-9.]+)\\.dist-info")
    string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" toolkit_version "${CMAKE_MATCH_1}")
    list(JOIN extras "," extras)
    set(commands "Install them beside torch with pip install 'cuda-toolkit[${extras}]==${toolkit_version}' or say where a \
CUDA toolkit is")
  else()
    set(commands "Say where a CUDA toolkit of torch's version is")
  endif()
  if("nccl.h" IN_LIST names)
    string(APPEND commands ", and install the NCCL that this torch was built with (its headers: libnccl-dev)")
  endif()
  set(${missing} "${names}" PARENT_SCOPE)
  set(${how} "${commands}, with -DCUDAToolkit_ROOT=<folder>." PARENT_SCOPE)
endfunction()

# cadre_check_nccl(<root> <folders> <version>): the version of NCCL if what Cadre includes compiles with these headers; else
# empty, with a warning that says what is missing.
function(cadre_check_nccl root folders version)
  set(${version} PARENT_SCOPE)
  cadre_read_nccl_version("${folders}" nccl)
  cadre_missing_cuda_headers("${root}" "${folders}" missing how)
  set(checked "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${CADRE_TORCH_VERSION} ${root} ${folders} ${nccl}")
  if(NOT missing AND NOT CADRE_NCCL_COMPILES_WITH STREQUAL checked)
    message(STATUS "Looking whether the headers of CUDA and NCCL compile")
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    try_compile(compiles SOURCE_FROM_CONTENT nccl.cc "#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>\n"
      NO_CACHE
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${root}/include;${root}/include/torch/csrc/api/include;${folders}"
      COMPILE_DEFINITIONS -DUSE_DISTRIBUTED -DUSE_C10D_GLOO -DUSE_C10D_NCCL -w
      CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
      OUTPUT_VARIABLE output)
    if(compiles)
      set(CADRE_NCCL_COMPILES_WITH "${checked}" CACHE INTERNAL "What the headers of NCCL last compiled with")
    elseif(output MATCHES "error: ([^\n]*)")
      set(missing "the compiler says: ${CMAKE_MATCH_1}")
    else()
      set(missing "the compiler ended without saying why")
    endif()
  endif()
  if(missing)
    list(JOIN missing ", " missing)
    message(WARNING "Cadre is built without NCCL: data-parallel training on GPUs will use Gloo, which is slower. The headers \
of CUDA and NCCL for ${root} (${cadre_torch_kind}) are incomplete: ${missing}. ${how}")
    return()
  endif()
  set(${version} "${nccl}" PARENT_SCOPE)
endfunction()

# cadre_import_torch_cuda(<root>): what a CUDA build of libtorch has beside the rest. Where there are also the headers of
# CUDA and NCCL, Cadre's process groups can use NCCL: the target's property CADRE_NCCL is its version then.
function(cadre_import_torch_cuda root)
  # CUDA's own libraries lie in wheels of their own, which the loader finds and the linker need not. A program that names
  # nothing of libtorch_cuda.so needs it all the same: it registers what runs on GPUs.
  target_link_options(cadre::libtorch INTERFACE -Wl,--allow-shlib-undefined -Wl,--no-as-needed)
  foreach(library torch_cuda c10_cuda)
    add_library(cadre::lib${library}_so SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::lib${library}_so PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${library}.so")
    target_link_libraries(cadre::libtorch INTERFACE cadre::lib${library}_so)
  endforeach()
  cadre_cuda_include_folders("${root}" "${cadre_torch_kind}" folders)
  target_include_directories(cadre::libtorch SYSTEM INTERFACE ${folders})
  if(cadre_torch_built_version)
    set(nccl "${cadre_torch_built_nccl}")
  else()
    cadre_check_nccl("${root}" "${folders}" nccl)
  endif()
  if(nccl)
    target_compile_definitions(cadre::libtorch INTERFACE USE_C10D_NCCL)
  endif()
  set_target_properties(cadre::libtorch PROPERTIES CADRE_NCCL "${nccl}")
endfunction()

# cadre_import_torch(<root>): makes the target.
function(cadre_import_torch root)
  add_library(cadre::libtorch INTERFACE IMPORTED GLOBAL)
  target_include_directories(cadre::libtorch SYSTEM INTERFACE
    "${root}/include" "${root}/include/torch/csrc/api/include")
  target_compile_definitions(cadre::libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  # The C++ library comes before libtorch, so that its own functions are found in it. Some wheels' libtorch.so and
  # libtorch_cpu.so export copies of a few of them (std::filesystem::remove_all in 2.11.0), which crash when called.
  target_link_libraries(cadre::libtorch INTERFACE stdc++)
  foreach(library torch torch_cpu c10)
    add_library(cadre::lib${library}_so SHARED IMPORTED GLOBAL)
    set_target_properties(cadre::lib${library}_so PROPERTIES IMPORTED_LOCATION "${root}/lib/lib${library}.so")
    target_link_libraries(cadre::libtorch INTERFACE cadre::lib${library}_so)
  endforeach()
  if(NOT cadre_torch_kind STREQUAL "cpu")
    cadre_import_torch_cuda("${root}")
  endif()
endfunction()

# cadre_compare_torch(<root>): warns where libcadre_torch.a was built with another kind of libtorch than this one.
function(cadre_compare_torch root)
  set(here "${root} is a ${cadre_torch_kind} build of torch ${CADRE_TORCH_VERSION}; this cadre::torch was built with a \
${cadre_torch_built_kind} build")
  set(how "Name that build with -DCADRE_VENV or -DCADRE_TORCH_ROOT, or compile cadre::torch with this one in your project: \
-DCADRE_TORCH_FROM_SOURCES=ON")
  if(cadre_torch_kind STREQUAL cadre_torch_built_kind)
    return()
  elseif(cadre_torch_kind STREQUAL "cpu" AND cadre_torch_built_nccl)
    message(WARNING "${here} and NCCL: programs that use cadre/train_torch.h will not link (undefined symbols of \
c10d::ProcessGroupNCCL), and nothing trains on a GPU. ${how}")
  elseif(cadre_torch_built_nccl)
    message(WARNING "${here} and NCCL ${cadre_torch_built_nccl}: data-parallel training on GPUs may crash or not start, \
because CUDA or NCCL is another one. ${how}")
  elseif(NOT cadre_torch_kind STREQUAL "cpu")
    message(WARNING "${here}, without NCCL: training on GPUs works, but data-parallel training on them goes through Gloo, \
which is slower. ${how}")
  endif()
endfunction()

cadre_find_torch(cadre_torch_root CADRE_TORCH_VERSION cadre_torch_kind cadre_torch_fault)
if(cadre_torch_built_version AND NOT cadre_torch_built_version VERSION_EQUAL CADRE_TORCH_VERSION)
  if(NOT cadre_torch_fault)
    message(STATUS "cadre::torch is compiled in this project, for torch ${CADRE_TORCH_VERSION}: the one that is installed is \
for ${cadre_torch_built_version}")
  endif()
  set(cadre_torch_built_version)
endif()
set(cadre_torch_from_sources TRUE)
if(cadre_torch_built_version)
  set(cadre_torch_from_sources FALSE)
endif()
if(NOT cadre_torch_fault AND NOT TARGET cadre::libtorch)
  if(cadre_torch_built_version)
    cadre_compare_torch("${cadre_torch_root}")
  endif()
  cadre_import_torch("${cadre_torch_root}")
endif()
set(cadre_torch_nccl)
if(TARGET cadre::libtorch)
  get_target_property(cadre_torch_nccl cadre::libtorch CADRE_NCCL)
  if(NOT cadre_torch_nccl)
    set(cadre_torch_nccl)
  endif()
endif()
