# fuse::catch2 is Catch2 with a main(), version 2 or 3, whichever the machine
# has.  Tests include the headers of version 3; cmake/catch2 leads them to those
# of version 2 where need be.
find_package(Catch2 REQUIRED)
add_library(fuse_catch2 INTERFACE)
add_library(fuse::catch2 ALIAS fuse_catch2)
target_link_libraries(fuse_catch2 INTERFACE Catch2::Catch2WithMain)
if(Catch2_VERSION VERSION_LESS 3)
  target_include_directories(fuse_catch2 SYSTEM INTERFACE "${CMAKE_SOURCE_DIR}/cmake/catch2")
endif()

find_program(FUSE_PYTHON python3 HINTS /usr/bin REQUIRED)
mark_as_advanced(FUSE_PYTHON)

# fuse_test(ROOM SOURCES... DEPENDS...)
#
# The executable test_ROOM.  Every TEST_CASE in it is a test of ctest named
# "ROOM: its name", labelled "unit" and "ROOM".  A test that prints a line
# "SKIPPED: reason" and returns (see the macro SKIP) counts as skipped.
# FUSE_SOURCE_DIR is defined as the tree's root, FUSE_TEST_DATA is whatever the
# environment of ctest says.
function(fuse_test room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPENDS")
  fuse_refuse_unknown(fuse_test ${room} ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(target test_${room})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE fuse_options fuse::catch2 ${arg_DEPENDS})
  # Compiled more often than it runs: not optimised in a release either.
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O0>")
  target_compile_definitions(${target} PRIVATE FUSE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set_property(TARGET ${target} PROPERTY RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")

  set(list "${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "${FUSE_PYTHON}" "${CMAKE_SOURCE_DIR}/cmake/list_tests.py"
      --catch ${Catch2_VERSION_MAJOR} --room ${room} --timeout ${arg_TIMEOUT}
      --directory "${CMAKE_SOURCE_DIR}" "$<TARGET_FILE:${target}>" "${list}"
    BYPRODUCTS "${list}"
    VERBATIM)
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake")
  file(CONFIGURE OUTPUT "${include}" @ONLY CONTENT [[
if(EXISTS "@list@")
  include("@list@")
else()
  add_test("@room@: @target@ is built" "@target@-is-not-built")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
