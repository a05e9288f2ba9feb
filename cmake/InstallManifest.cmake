# What `make install` put into a folder, and `make uninstall` removes from it: the files in share/cadre/install_manifest.txt.
#
#   PREFIX=<folder> cmake -DMANIFEST=<install_manifest.txt of the build folder> -P InstallManifest.cmake   writes the list
#   PREFIX=<folder> cmake -P InstallManifest.cmake                                                         removes the files
#
# DESTDIR in the environment is the root of the tree, as for `cmake --install`.
#
# The list has what earlier versions installed too. Files of others stay, and so do the folders that have some.
set(prefix "$ENV{PREFIX}")
cmake_path(ABSOLUTE_PATH prefix NORMALIZE)
set(root "$ENV{DESTDIR}${prefix}")
set(list_file "${root}/share/cadre/install_manifest.txt")

set(files)
if(EXISTS "${list_file}")
  file(STRINGS "${list_file}" files)
endif()

if(MANIFEST)
  file(STRINGS "${MANIFEST}" installed)
  foreach(file ${installed})
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${prefix}")
    list(APPEND files "${file}")
  endforeach()
  list(SORT files)
  list(REMOVE_DUPLICATES files)
  list(JOIN files "\n" files)
  file(WRITE "${list_file}" "${files}\n")
  return()
endif()

if(NOT files)
  message(FATAL_ERROR "Nothing to remove: ${list_file} is not there, so `make install` put nothing into ${root}. Name \
the folder that it was given: make uninstall PREFIX=<folder>")
endif()
list(LENGTH files number)
set(left)
foreach(file ${files})
  file(REMOVE "${root}/${file}")  # which says nothing where it fails
  if(EXISTS "${root}/${file}")
    list(APPEND left "${root}/${file}")
  endif()
endforeach()
if(left)  # the list stays, for another time
  list(LENGTH left left_number)
  list(GET left 0 first)
  message(FATAL_ERROR "${left_number} of the ${number} files could not be removed, such as ${first}. Run this as the \
user who installed them.")
endif()
file(REMOVE "${list_file}")

# Empty folders, the deepest first. Those that have other files are left.
set(folders)
foreach(file ${files} share/cadre/install_manifest.txt)
  cmake_path(GET file PARENT_PATH folder)
  while(folder)
    list(APPEND folders "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING)
set(kept)
foreach(folder ${folders})
  file(GLOB inside "${root}/${folder}/*" "${root}/${folder}/.*")
  list(FILTER inside EXCLUDE REGEX "/\\.\\.?$")
  if(NOT inside)
    file(REMOVE_RECURSE "${root}/${folder}")
  elseif(folder MATCHES "cadre")
    list(APPEND kept "${root}/${folder}")
  endif()
endforeach()
message(STATUS "Removed the ${number} files that were installed in ${root}")
foreach(folder ${kept})
  message(STATUS "${folder} stays: it has files that were not installed")
endforeach()
