# ballast_embed_text(TARGET NAMESPACE FILE...): compiles the files into TARGET as text. NAMESPACE::embedded_text("name")
# gives a file by its last name. Run as a script (cmake -P) this file writes the source at build time.
if(CMAKE_SCRIPT_MODE_FILE)
  set(cases "")
  foreach(file ${FILES})
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(APPEND cases "  if (name == \"${name}\") return R\"embedded(${text})embedded\";\n")
  endforeach()
  file(WRITE ${OUT}
    "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n"
    "std::string_view embedded_text(std::string_view name);\n\n"
    "std::string_view embedded_text(std::string_view name) {\n${cases}  return {};\n}\n\n}  // namespace ${NAMESPACE}\n")
  return()
endif()

function(ballast_embed_text target namespace)
  set(out ${CMAKE_BINARY_DIR}/generated/${target}_text.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAMESPACE=${namespace} "-DFILES=${ARGN}" -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
