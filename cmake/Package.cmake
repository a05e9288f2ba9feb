# `cpack`: Debian packages, one for each component of Install.cmake. Those of libtorch are there where CADRE_TORCH is on, those
# of Arrow where CADRE_ARROW is. Neither library is a Debian package, so the project that uses them says where they are; only
# libcadre-storage-dev has its own copy of Arrow.
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
set(CPACK_COMPONENTS_ALL program tune doc)
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
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS librsvg2-2)  # for pictures as PNG
if(CADRE_ARROW)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libcadre-storage-dev (= ${PROJECT_VERSION})")  # for s3:// and Parquet
endif()

cadre_debian_package(tune libcadre-dev libdevel
  "libcapnp-dev, libfmt-dev, libnlopt-dev, libsqlite3-dev, libxxhash-dev"
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
Debian: the project that uses it says where it is, and compiles the sources in
this package where that is another version.")
endif()

if(CADRE_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL vision)
  cadre_debian_package(vision libcadre-vision-dev libdevel
    "libcadre-torch-dev (= ${PROJECT_VERSION})"
    "images for training with libtorch for Cadre (development files)"
    "Changes images at random while they are read, as torchvision does.

This package has the headers, the static library and the target
cadre::vision of the CMake package cadre.")
endif()

if(CADRE_ARROW)
  include(Arrow)  # its version
  list(APPEND CPACK_COMPONENTS_ALL storage data)
  cadre_debian_package(storage libcadre-storage-dev libdevel
    "libcadre-dev (= ${PROJECT_VERSION}), libcurl4 (>= 7.88), libssl3"
    "experiments in object storages for Cadre (S3, Google, Azure)"
    "Lets programs that use Cadre, and the program cadre, keep experiments in S3,
Google Cloud Storage and Azure Blob Storage.

This package has the library that is loaded where such a URI is used, the
parts of Apache Arrow ${CADRE_ARROW_VERSION} that it needs, and the target
cadre::storage of the CMake package cadre.")
  cadre_debian_package(data libcadre-data-dev libdevel
    "libcadre-dev (= ${PROJECT_VERSION}), libjpeg-dev, libpng-dev"
    "datasets on Apache Arrow for Cadre (development files)"
    "Streams Parquet, CSV, JSON, images and texts through functions in worker
processes into training, aggregates and files.

This package has the headers, the static library and the target cadre::data of
the CMake package cadre. It is built for Arrow ${CADRE_ARROW_VERSION} of the Python wheel
pyarrow, which is not part of Debian: the project that uses it says where it
is.")
endif()

if(CADRE_ARROW AND CADRE_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL data_torch)
  cadre_debian_package(data_torch libcadre-data-torch-dev libdevel
    "libcadre-data-dev (= ${PROJECT_VERSION}), libcadre-torch-dev (= ${PROJECT_VERSION})"
    "datasets as tensors of libtorch for Cadre (development files)"
    "Gives the batches of Cadre's datasets as tensors, without a copy.

This package has the header, the static library and the target
cadre::data_torch of the CMake package cadre.")
endif()

cadre_debian_package(doc cadre-doc doc ""
  "tutorials and other pages of the C++ library Cadre"
  "Describes hyper-parameter tuning, data-parallel training and datasets with
Cadre, from a program of thirty lines on.")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SUGGESTS "libcadre-dev")

include(CPack)
