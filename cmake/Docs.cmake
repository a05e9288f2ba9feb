# The API reference: the target cadre_docs makes it in docs/html of the build tree, with Doxygen.

# cadre_docs_command(<variable> <output>): the command, to be run in the checkout. It fails where a public declaration has
# no comment.
function(cadre_docs_command variable output)
  set(${variable} ${CMAKE_COMMAND} -E env "CADRE_VERSION=${PROJECT_VERSION}" "CADRE_DOCS_OUTPUT=${output}"
    "CADRE_GENERATED_INCLUDE=${PROJECT_BINARY_DIR}/include" doxygen docs/api/Doxyfile PARENT_SCOPE)
endfunction()

cadre_docs_command(docs_command "${PROJECT_BINARY_DIR}/docs")
add_custom_target(cadre_docs COMMAND ${docs_command} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" VERBATIM)
