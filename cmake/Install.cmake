# `cmake --install`: the components `program` (the program cadre), `tune` (what cadre::tune needs), `torch`, `storage`,
# `vision`, `data`, `data_torch`, and `doc`, the pages.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/cadre")
# Sources of what depends on the version of libtorch, and the private headers that they include.
set(cadre_source_dir "${CMAKE_INSTALL_DATADIR}/cadre/src")

# cadre_install_sources(<folder of src/> <component> <pattern>...): files of these names.
function(cadre_install_sources folder component)
  set(patterns)
  foreach(pattern IN LISTS ARGN)
    list(APPEND patterns PATTERN "${pattern}")
  endforeach()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/${folder}" DESTINATION "${cadre_source_dir}" COMPONENT ${component}
    FILES_MATCHING ${patterns})
endfunction()

# cadre_install_licence(<component> <Debian package> [<library>...]): where Debian wants it, with those of libraries that are
# in it. A wheel has one of each, where Python wants it.
function(cadre_install_licence component package)
  if(SKBUILD)
    return()
  endif()
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
    DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
  foreach(library IN LISTS ARGN)
    install(FILES "${PROJECT_SOURCE_DIR}/licenses/${library}.txt"
      DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}/licenses" COMPONENT ${component})
  endforeach()
endfunction()
if(SKBUILD)
  file(GLOB licences CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/licenses/*.txt")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" ${licences} DESTINATION "${SKBUILD_METADATA_DIR}/licenses" COMPONENT python)
  install(FILES "${PROJECT_SOURCE_DIR}/web/third_party/uplot/LICENSE" RENAME uplot.txt
    DESTINATION "${SKBUILD_METADATA_DIR}/licenses" COMPONENT python)
endif()

# cadre_install_archive(<target> <export set> <component>): an archive, and the CMake file that tells of it.
function(cadre_install_archive target export_set component)
  install(TARGETS ${target} EXPORT ${export_set}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component}
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT ${export_set} NAMESPACE cadre:: DESTINATION "${package_dir}" COMPONENT ${component})
endfunction()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/cadreConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/cadreConfig.cmake" INSTALL_DESTINATION "${package_dir}"
  PATH_VARS cadre_source_dir NO_SET_AND_CHECK_MACRO)
# While the major version is 0, another minor version is another interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cadreConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/cadreConfig.cmake" "${PROJECT_BINARY_DIR}/cadreConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Dependencies.cmake" "${PROJECT_SOURCE_DIR}/cmake/Torch.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/VirtualEnvironment.cmake"
  DESTINATION "${package_dir}" COMPONENT tune)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/cadre" "${PROJECT_BINARY_DIR}/include/cadre"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT tune FILES_MATCHING PATTERN "*.h"
  PATTERN "torch.h" EXCLUDE PATTERN "torch" EXCLUDE PATTERN "train_torch.h" EXCLUDE PATTERN "train_torch" EXCLUDE
  PATTERN "vision.h" EXCLUDE PATTERN "vision" EXCLUDE PATTERN "data.h" EXCLUDE PATTERN "data_torch.h" EXCLUDE PATTERN "data" EXCLUDE)
if(CADRE_SHARED)
  install(TARGETS cadre_tune_shared EXPORT cadreTuneTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT tune
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT cadreTuneTargets NAMESPACE cadre:: DESTINATION "${package_dir}" COMPONENT tune)
else()
  cadre_install_archive(cadre_tune cadreTuneTargets tune)
endif()
if(TARGET cadre_tls)  # beside the shared library, or where programs with the archives look for it
  install(TARGETS cadre_tls COMPONENT tune
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}$<$<NOT:$<BOOL:${CADRE_SHARED}>>:/cadre>")
endif()
if(TARGET cadre_tls AND NOT CADRE_SHARED)  # OpenSSL is inside, whose licence must go with it
  find_file(CADRE_LICENCE_openssl NAMES LICENSE.txt LICENSE copyright NO_CMAKE_FIND_ROOT_PATH NO_DEFAULT_PATH
    PATHS "${OPENSSL_ROOT_DIR}" "${OPENSSL_ROOT_DIR}/share" /usr/share PATH_SUFFIXES doc/openssl licenses/openssl doc/libssl-dev)
  mark_as_advanced(CADRE_LICENCE_openssl)
  if(CADRE_LICENCE_openssl)
    install(FILES "${CADRE_LICENCE_openssl}" RENAME openssl.txt DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libcadre-dev"
      COMPONENT tune)
  else()
    message(WARNING "OpenSSL's licence was not found, so what is installed lacks it: name the file with \
-DCADRE_LICENCE_openssl=<file>.")
  endif()
endif()
cadre_install_licence(tune libcadre-dev rapidjson eigen)

# Without the archive a project compiles the sources.
if(CADRE_TORCH OR CADRE_SHARED)
  install(FILES "${PROJECT_SOURCE_DIR}/include/cadre/torch.h" "${PROJECT_SOURCE_DIR}/include/cadre/train_torch.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT torch)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/cadre/train_torch" "${PROJECT_SOURCE_DIR}/include/cadre/torch"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT torch)
  if(CADRE_TORCH)
    cadre_install_archive(cadre_torch cadreTorchTargets torch)
    install(FILES "${PROJECT_BINARY_DIR}/cadreTorchBuild.cmake" DESTINATION "${package_dir}" COMPONENT torch)
  endif()
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/Precompile.cmake" "${PROJECT_SOURCE_DIR}/cmake/Unity.cmake"
    DESTINATION "${package_dir}" COMPONENT torch)
  cadre_install_sources(torch torch *.cc *.h CMakeLists.txt)
  foreach(folder base worker)
    cadre_install_sources(${folder} torch *.h)
  endforeach()
  cadre_install_licence(torch libcadre-torch-dev)

  install(FILES "${PROJECT_SOURCE_DIR}/include/cadre/vision.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT vision)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/cadre/vision" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT vision)
  if(CADRE_TORCH)
    cadre_install_archive(cadre_vision cadreVisionTargets vision)
  endif()
  cadre_install_sources(vision vision *.cc *.h CMakeLists.txt)
  cadre_install_licence(vision libcadre-vision-dev)
endif()

if(CADRE_ARROW)
  install(TARGETS cadre_object_storage cadre_table_file COMPONENT storage
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}$<$<NOT:$<BOOL:${CADRE_SHARED}>>:/cadre>")
  cadre_install_archive(cadre_storage cadreStorageTargets storage)
endif()
# Their archives would bring a second core beside the shared library.
if(CADRE_ARROW AND NOT CADRE_SHARED)
  # With Arrow beside it, where it looks first: it works wherever the package is, without Python and a wheel.
  get_target_property(arrow_library cadre::arrow IMPORTED_LOCATION)
  string(REPLACE "libarrow.so" "libarrow_s3.so" arrow_s3_library "${arrow_library}")
  if(NOT EXISTS "${arrow_s3_library}")
    set(arrow_s3_library)  # a version that has S3 in libarrow.so
  endif()
  get_target_property(parquet_library cadre::parquet IMPORTED_LOCATION)
  install(FILES "${arrow_library}" ${arrow_s3_library} "${parquet_library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/cadre" COMPONENT storage)
  cmake_path(GET arrow_library PARENT_PATH arrow_folder)
  file(GLOB arrow_licences "${arrow_folder}-*.dist-info/licenses/*.txt")
  install(FILES ${arrow_licences} DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libcadre-storage-dev/arrow" COMPONENT storage)
  cadre_install_licence(storage libcadre-storage-dev rapidjson)
  install(FILES "${PROJECT_SOURCE_DIR}/cmake/Arrow.cmake" "${PROJECT_BINARY_DIR}/cadreArrowBuild.cmake"
    "${PROJECT_SOURCE_DIR}/cmake/ImageLibraries.cmake" DESTINATION "${package_dir}" COMPONENT data)
  install(FILES "${PROJECT_SOURCE_DIR}/include/cadre/data.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT data)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/cadre/data" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT data)
  cadre_install_archive(cadre_data cadreDataTargets data)
  cadre_install_licence(data libcadre-data-dev)
endif()

if(CADRE_ARROW AND CADRE_TORCH AND NOT CADRE_SHARED)
  install(FILES "${PROJECT_SOURCE_DIR}/include/cadre/data_torch.h"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/cadre" COMPONENT data_torch)
  cadre_install_archive(cadre_data_torch cadreDataTorchTargets data_torch)
  cadre_install_sources(data_torch data_torch *.cc *.h CMakeLists.txt)
  cadre_install_licence(data_torch libcadre-data-torch-dev)
endif()

if(TARGET cadre)
  install(TARGETS cadre cadre-report RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
  cadre_install_licence(program cadre rapidjson eigen cli11 tomlplusplus)
  if(NOT SKBUILD)
    install(FILES "${PROJECT_SOURCE_DIR}/web/third_party/uplot/LICENSE" RENAME uplot.txt
      DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/cadre/licenses" COMPONENT program)
  endif()
  set(shell_dir "${PROJECT_BINARY_DIR}/shell")
  install(FILES "${shell_dir}/cadre.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program)
  install(FILES "${shell_dir}/cadre.bash" RENAME cadre
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT program)
  foreach(folder site-functions vendor-completions)  # everywhere, and on Debian
    install(FILES "${shell_dir}/cadre.zsh" RENAME _cadre DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${folder}"
      COMPONENT program)
  endforeach()
  install(FILES "${shell_dir}/cadre.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
    COMPONENT program)
endif()

# The pages link to each other as in the checkout.
set(doc_dir "${CMAKE_INSTALL_DATADIR}/doc/cadre")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${doc_dir}" COMPONENT doc)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${doc_dir}" COMPONENT doc
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "api" EXCLUDE)
# The examples are a project there, and MNIST is fetched as here.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${doc_dir}" COMPONENT doc
  FILES_MATCHING PATTERN "*.cc" PATTERN "*.h" PATTERN "*.md" PATTERN "CMakeLists.txt" PATTERN "write_jpegs.py"
  PATTERN "optuna_searcher.py")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/programs" DESTINATION "${doc_dir}/examples" USE_SOURCE_PERMISSIONS COMPONENT doc)
install(PROGRAMS "${PROJECT_SOURCE_DIR}/tools/fetch_mnist.py" DESTINATION "${doc_dir}/tools" COMPONENT doc)
install(FILES "${PROJECT_SOURCE_DIR}/tools/mnist-requirements.txt" DESTINATION "${doc_dir}/tools" COMPONENT doc)
cadre_install_licence(doc cadre-doc)

# Builds what is installed.
add_custom_target(cadre_package)
foreach(target cadre_tune cadre_tls cadre_torch cadre_vision cadre_object_storage cadre_table_file cadre_data cadre_data_torch cadre cadre-report)
  if(TARGET ${target})
    add_dependencies(cadre_package ${target})
  endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  include(Package)
endif()
