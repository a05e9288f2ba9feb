# A package in a Python virtual environment, which is
#   CADRE_VENV          this one; else that of the environment variable
#   VIRTUAL_ENV         which is set where one is active.

# cadre_find_in_venv(<package> <folder> <venv>): its folder, of the latest Python where there are several, empty if it is
# not there; and the environment, empty if there is none.
function(cadre_find_in_venv package folder venv)
  set(found)
  set(environment "${CADRE_VENV}")
  if(NOT environment)
    set(environment "$ENV{VIRTUAL_ENV}")
  endif()
  if(environment)  # else this would be the system's Python
    file(GLOB paths "${environment}/lib/python3*/site-packages/${package}")
    list(SORT paths COMPARE NATURAL)
    list(POP_BACK paths found)
  endif()
  set(${folder} "${found}" PARENT_SCOPE)
  set(${venv} "${environment}" PARENT_SCOPE)
endfunction()
