# Kept when the build folder is: baking takes longer than all tests together.
set(FUSE_TEST_IMAGES "${CMAKE_SOURCE_DIR}/build/images" CACHE PATH
  "Where the end-to-end tests keep guest images")

# fuse_e2e_tests(KIND FILES FILE... [DEPENDS FILE...] [ENVIRONMENT NAME=VALUE...])
#
# A test of ctest named "KIND: its name" for each test of those Python files of this
# folder; they are listed anew when a file of DEPENDS changes.  Only the static
# executable has such tests, since users have that one.
function(fuse_e2e_tests kind)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;DEPENDS;ENVIRONMENT")
  fuse_refuse_unknown(fuse_e2e_tests ${kind} ${arg_UNPARSED_ARGUMENTS})
  set(lister "${CMAKE_SOURCE_DIR}/tests/e2e/list_tests.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${arg_FILES} ${arg_DEPENDS} "${lister}")
  execute_process(
    COMMAND "${FUSE_PYTHON}" -B "${lister}" ${arg_FILES}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    OUTPUT_VARIABLE tests
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  set(environment "FUSE_BIN=$<TARGET_FILE:fuse>" "FUSE_TEST_IMAGES=${FUSE_TEST_IMAGES}"
    "PYTHONDONTWRITEBYTECODE=1" "PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/e2e" ${arg_ENVIRONMENT})

  string(REPLACE "\n" ";" tests "${tests}")
  foreach(test IN LISTS tests)
    string(REPLACE "|" ";" fields "${test}")
    list(GET fields 0 file)
    list(GET fields 1 method)
    list(GET fields 2 name)
    list(GET fields 3 seconds)
    list(GET fields 4 beside)
    list(GET fields 5 labels)
    string(REPLACE "," ";" labels "${labels}")
    # The test ends itself a good while before ctest would kill it, which would
    # leave its virtual machines running.
    math(EXPR seconds "${seconds} + 180")
    add_test(NAME "${kind}: ${name}"
      COMMAND "${FUSE_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/${file}" ${method})
    set_tests_properties("${kind}: ${name}" PROPERTIES
      TIMEOUT ${seconds} ENVIRONMENT "${environment}" LABELS "${labels}"
      SKIP_REGULAR_EXPRESSION "(^|\n)SKIPPED: ")
    if(beside STREQUAL "serial")
      set_property(TEST "${kind}: ${name}" PROPERTY RUN_SERIAL TRUE)
    endif()
    if(vm IN_LIST labels)
      set_property(TEST "${kind}: ${name}" PROPERTY FIXTURES_REQUIRED guest_images)
    endif()
  endforeach()
endfunction()
