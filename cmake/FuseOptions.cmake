# fuse_options: the language, the warnings and the checks that all of our own
# code is compiled with.  A release keeps its assertions: the agent runs as root
# and must stop rather than go on with a broken invariant.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELEASE "-O2")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
endif()

find_program(FUSE_CCACHE ccache)
mark_as_advanced(FUSE_CCACHE)
if(FUSE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${FUSE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${FUSE_CCACHE}")
endif()

add_library(fuse_options INTERFACE)
target_include_directories(fuse_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_features(fuse_options INTERFACE cxx_std_20)
target_compile_definitions(fuse_options INTERFACE _GLIBCXX_ASSERTIONS)
target_compile_options(fuse_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -fstack-protector-strong -ffunction-sections -fdata-sections)
if(FUSE_WERROR)
  target_compile_options(fuse_options INTERFACE -Werror)
endif()
target_link_options(fuse_options INTERFACE -Wl,--gc-sections -Wl,--build-id=sha1)

find_package(Threads REQUIRED)
target_link_libraries(fuse_options INTERFACE Threads::Threads)

# Sanitizers apply to every target of the tree, ours and the sources of
# libraries that are compiled with it.
if(FUSE_SANITIZE)
  add_compile_options(-fsanitize=${FUSE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)
  # These look at every access, and double the time to compile and three times
  # over with optimisation.  AddressSanitizer sees most of what they would.
  if(FUSE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=null,alignment,object-size)
  endif()
  add_link_options(-fsanitize=${FUSE_SANITIZE})
  # The instrumentation hides from g++ what is initialised where.
  target_compile_options(fuse_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(FUSE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "the fuzz targets need clang++: use the fuzz preset")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
