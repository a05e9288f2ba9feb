# cadre_precompile(<target> [<target>...])
#
# Compiles the header of libtorch once for these targets, instead of once for each of their files: <cadre/torch.h> comes
# precompiled, before the first line of each file. The targets are compiled with the same options and definitions, and are
# linked with cadre::torch.
function(cadre_precompile first)
  target_precompile_headers(${first} PRIVATE <cadre/torch.h>)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
endfunction()
