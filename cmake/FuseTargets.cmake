# fuse_library(NAME SOURCES... [DEPENDS...] [PRIVATE_DEPENDS...])
#
# One static library per room.  DEPENDS are the layers below, which whoever uses
# the library sees too; PRIVATE_DEPENDS are the libraries that it wraps.
function(fuse_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS")
  fuse_refuse_unknown(fuse_library ${name} ${arg_UNPARSED_ARGUMENTS})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name}
    PUBLIC fuse_options ${arg_DEPENDS}
    PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()

# fuse_small(NAME)
#
# A library of which nothing is hot: small rather than fast in a release, since
# every guest carries the executable.
function(fuse_small name)
  target_compile_options(${name} PRIVATE "$<$<CONFIG:Release>:-Os>")
endfunction()

# fuse_program(NAME SOURCES... DEPENDS...)
#
# The executable.  In a release it is fully static and lands in build/, and its
# dlopen() is the one in static/, which says no.
function(fuse_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  fuse_refuse_unknown(fuse_program ${name} ${arg_UNPARSED_ARGUMENTS})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE fuse_options ${arg_DEPENDS})
  if(FUSE_STATIC)
    target_sources(${name} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/no_dlopen.c")
    target_link_options(${name} PRIVATE -static -s)
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_SOURCE_DIR}/build"
      CXX_LINKER_LAUNCHER "${CMAKE_SOURCE_DIR}/cmake/quiet_link")
  endif()
endfunction()

# fuse_fuzzer(NAME SOURCES... DEPENDS... [CORPUS FOLDER])
#
# A libFuzzer executable from a source with LLVMFuzzerTestOneInput; it starts
# from the files of FOLDER.  Only the fuzz preset has such a target.
function(fuse_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS" "SOURCES;DEPENDS")
  fuse_refuse_unknown(fuse_fuzzer ${name} ${arg_UNPARSED_ARGUMENTS})
  if(NOT FUSE_FUZZ)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE fuse_options ${arg_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_property(TARGET ${name} PROPERTY RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzzers")
  if(arg_CORPUS)
    get_filename_component(corpus "${arg_CORPUS}" ABSOLUTE)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/corpora/${name}" CONTENT "${corpus}\n")
  endif()
  add_dependencies(fuse_fuzzers ${name})
endfunction()

if(FUSE_FUZZ)
  add_custom_target(fuse_fuzzers)
endif()

# fuse_check_headers(TARGET ROOMS...)
#
# A target that compiles headers by themselves, so that none leans on what was
# included before it.  One with a source file of its name is compiled so anyway:
# the lint sees to it that the source includes it first.  Not part of the
# default build.
function(fuse_check_headers target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ROOMS")
  set(sources)
  foreach(room IN LISTS arg_ROOMS)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}"
      "${CMAKE_SOURCE_DIR}/${room}/*.h")
    foreach(header IN LISTS headers)
      string(REGEX REPLACE "\\.h$" ".cpp" own_source "${header}")
      if(EXISTS "${CMAKE_SOURCE_DIR}/${own_source}")
        continue()
      endif()
      set(source "${CMAKE_BINARY_DIR}/headers/${header}.cpp")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n")
      list(APPEND sources "${source}")
    endforeach()
  endforeach()
  if(sources)
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${target} PRIVATE fuse_options
      fuse::yaml fuse::json fuse::cli11 fuse::httplib fuse::curl fuse::sqlite fuse::openssl)
    set_property(TARGET ${target} PROPERTY DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

function(fuse_refuse_unknown function name)
  if(ARGN)
    message(FATAL_ERROR "${function}(${name}): what is \"${ARGN}\"? SOURCES or DEPENDS is missing")
  endif()
endfunction()
