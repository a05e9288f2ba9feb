# `cpack`: Debian packages, one for each component of Install.cmake. libcadre-torch-dev is there where CADRE_TORCH is on:
# an archive for one version of libtorch, which is no Debian package, so the project that uses it says where that is.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cadre)
set(CPACK_PACKAGE_VENDOR "Cadre maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_CONTACT "Cadre maintainers <maintainers@cadre.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/StripArchives.cmake")
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program tune)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# cadre_debian_package(<component> <package> <section> <depends> <summary> <description>)
macro(cadre_debian_package component package section depends summary description)
  string(TOUPPER ${component} COMPONENT)
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${COMPONENT}_DESCRIPTION "${summary}\n${description}")  # a Debian description begins with its summary
endmacro()

cadre_debian_package(program cadre science ""
  "program that shows experiments of hyper-parameter tuning"
  "Lists, shows, plots and exports experiments that were made with the C++
library Cadre: finished, interrupted, failed, or running in another process.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)

cadre_debian_package(tune libcadre-dev libdevel
  "libcapnp-dev, libfmt-dev, libsqlite3-dev, libxxhash-dev"
  "Population Based Training and other tuners for C++ (development files)"
  "Trains populations of models in C++20: hyper-parameter tuning with Population
Based Training, trials in processes of their own, and experiments that survive
whatever dies.

This package has the headers, the static library and the CMake package cadre
with the target cadre::tune.")
set(CPACK_DEBIAN_TUNE_PACKAGE_RECOMMENDS "cadre, cmake (>= 3.25)")

if(CADRE_TORCH)
  include(Torch)  # its version
  list(APPEND CPACK_COMPONENTS_ALL torch)
  cadre_debian_package(torch libcadre-torch-dev libdevel
    "libcadre-dev (= ${PROJECT_VERSION}), zlib1g-dev"
    "checkpoints of libtorch models for Cadre (development files)"
    "Saves and restores the state of libtorch's modules and optimizers in files
that Python's torch reads.

This package has the header, the static library and the target cadre::torch of
the CMake package cadre. It is built for libtorch ${CADRE_TORCH_VERSION}, which is not part of
Debian: the project that uses it says where it is.")
endif()

include(CPack)
