# The third-party libraries, each under one name:
#
#   fuse::yaml  fuse::json  fuse::cli11  fuse::httplib  fuse::curl
#   fuse::sqlite  fuse::pq  fuse::openssl  fuse::catch2
#
# All are linked from static archives, in every preset; what differs is whether
# the C library is.

find_program(FUSE_DEPS_SCRIPT deps PATHS "${CMAKE_SOURCE_DIR}/scripts" NO_DEFAULT_PATH REQUIRED)
mark_as_advanced(FUSE_DEPS_SCRIPT)
execute_process(
  COMMAND "${FUSE_DEPS_SCRIPT}"
  OUTPUT_VARIABLE fuse_deps_prefix
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${FUSE_DEPS_SCRIPT}" "${CMAKE_SOURCE_DIR}/cmake/dependencies.lock")

# fuse_archive(NAME FILE HEADER [FROM PREFIX] [DEPENDS...]): the target
# fuse::NAME for a static archive and the folder of its header.
function(fuse_archive name file header)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "FROM" "DEPENDS")
  if(arg_FROM)
    set(archive "${arg_FROM}/lib/${file}")
    set(include "${arg_FROM}/include")
  else()
    unset(archive)
    unset(include)
    find_library(archive NAMES ${file} NO_CACHE REQUIRED)
    find_path(include NAMES ${header} NO_CACHE REQUIRED)
  endif()
  add_library(fuse::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(fuse::${name} PROPERTIES IMPORTED_LOCATION "${archive}")
  # The compiler's own folders must not be named again: it would search them
  # in another order.
  if(NOT include STREQUAL "/usr/include")
    target_include_directories(fuse::${name} SYSTEM INTERFACE "${include}")
  endif()
  target_link_libraries(fuse::${name} INTERFACE ${arg_DEPENDS})
endfunction()

# A library of headers only, in the compiler's own folders.
function(fuse_headers_only name header)
  find_path(include NAMES ${header} NO_CACHE REQUIRED)
  add_library(fuse::${name} INTERFACE IMPORTED GLOBAL)
endfunction()

fuse_headers_only(json nlohmann/json.hpp)
fuse_headers_only(cli11 CLI/CLI.hpp)
fuse_archive(yaml libyaml-cpp.a yaml-cpp/yaml.h)
fuse_archive(sqlite libsqlite3.a sqlite3.h DEPENDS m Threads::Threads ${CMAKE_DL_LIBS})

# What the distribution's libcrypto needs besides itself differs by release.
find_package(PkgConfig REQUIRED)
pkg_check_modules(fuse_crypto REQUIRED libcrypto)
set(crypto_needs ${fuse_crypto_STATIC_LIBRARIES})
list(REMOVE_ITEM crypto_needs crypto dl pthread)
set(crypto_archives Threads::Threads ${CMAKE_DL_LIBS})
foreach(library IN LISTS crypto_needs)
  find_library(archive NAMES lib${library}.a NO_CACHE REQUIRED)
  list(APPEND crypto_archives "${archive}")
  unset(archive)
endforeach()
fuse_archive(crypto libcrypto.a openssl/evp.h DEPENDS ${crypto_archives})
fuse_archive(openssl libssl.a openssl/ssl.h DEPENDS fuse::crypto)

fuse_archive(pgport libpgport.a postgres_ext.h FROM "${fuse_deps_prefix}")
fuse_archive(pgcommon libpgcommon.a postgres_ext.h FROM "${fuse_deps_prefix}"
  DEPENDS fuse::pgport)
fuse_archive(pq libpq.a libpq-fe.h FROM "${fuse_deps_prefix}"
  DEPENDS fuse::pgcommon fuse::pgport fuse::openssl m)

fuse_archive(curl libcurl.a curl/curl.h FROM "${fuse_deps_prefix}" DEPENDS fuse::openssl)

# The header changes shape with these definitions, so they travel with the
# target to everything that includes it.  A sanitizer must see both sides of an
# inline function, so there the source is compiled here.
file(STRINGS "${fuse_deps_prefix}/httplib.defines" httplib_defines)
if(FUSE_SANITIZE)
  add_library(fuse_httplib STATIC EXCLUDE_FROM_ALL "${fuse_deps_prefix}/src/httplib.cc")
  target_include_directories(fuse_httplib SYSTEM PUBLIC "${fuse_deps_prefix}/include")
  target_compile_definitions(fuse_httplib PUBLIC ${httplib_defines}
    PRIVATE _GLIBCXX_ASSERTIONS)
  target_link_libraries(fuse_httplib PUBLIC Threads::Threads)
  add_library(fuse::httplib ALIAS fuse_httplib)
else()
  fuse_archive(httplib libhttplib.a httplib.h FROM "${fuse_deps_prefix}"
    DEPENDS Threads::Threads)
  target_compile_definitions(fuse::httplib INTERFACE ${httplib_defines})
endif()
