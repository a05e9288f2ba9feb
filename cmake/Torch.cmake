# libtorch out of the Python wheel in CADRE_VENV, as the imported target torch_wheel.
#
# The wheel's own TorchConfig.cmake is not used: it asks for the CUDA toolkit when the wheel is a CUDA build, warns
# about a library that nobody needs, and adds search paths of the machine that the wheel was built on.
set(CADRE_TORCH_VERSION 2.13.0)

file(GLOB torch_root "${CADRE_VENV}/lib/python3*/site-packages/torch")
if(NOT EXISTS "${torch_root}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No torch ${CADRE_TORCH_VERSION} in ${CADRE_VENV}. Run `make setup`, or configure with "
    "-DCADRE_TORCH=OFF to build without it, or with -DCADRE_VENV=<virtual environment that has it>.")
endif()
file(STRINGS "${torch_root}/version.py" version_line REGEX "^__version__ = ")
if(NOT version_line MATCHES "'([0-9]+\\.[0-9]+\\.[0-9]+)" OR NOT CMAKE_MATCH_1 VERSION_EQUAL CADRE_TORCH_VERSION)
  message(FATAL_ERROR "${torch_root} is ${version_line}; Cadre needs torch ${CADRE_TORCH_VERSION}. Run `make setup`.")
endif()

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE
  "${torch_root}/include" "${torch_root}/include/torch/csrc/api/include")
target_compile_definitions(torch_wheel INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
foreach(library torch torch_cpu c10)
  add_library(torch_wheel_${library} SHARED IMPORTED)
  set_target_properties(torch_wheel_${library} PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/lib${library}.so")
  target_link_libraries(torch_wheel INTERFACE torch_wheel_${library})
endforeach()
if(EXISTS "${torch_root}/lib/libtorch_cuda.so")
  # Its CUDA libraries lie in wheels of their own, which the loader finds and the linker need not.
  target_link_options(torch_wheel INTERFACE -Wl,--allow-shlib-undefined)
endif()
