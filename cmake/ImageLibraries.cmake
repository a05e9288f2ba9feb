# The libraries that decode images, which libcadre_data.a is linked with: for Cadre's own build, and installed beside
# cadreConfig.cmake for the projects that link the archive.
#
# Sets cadre_missing_packages to the Debian packages of what is not there: empty when nothing is missing.
set(cadre_missing_packages)
find_package(JPEG QUIET)
if(NOT JPEG_FOUND)
  list(APPEND cadre_missing_packages libjpeg-dev)
endif()
find_package(PNG QUIET)
if(NOT PNG_FOUND)
  list(APPEND cadre_missing_packages libpng-dev)
endif()
