# What `make install` and `make deb` put where.  The package cannot be named fuse,
# which Debian has; its folder of documents is named after it in every prefix.
include(GNUInstallDirs)
set(FUSE_PACKAGE fuse-gpu)
set(doc_dir "${CMAKE_INSTALL_DATADIR}/doc/${FUSE_PACKAGE}")
set(unit_dir lib/systemd/system)
# Not what the umask of whoever installs would make of them.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The manual is what the executable says of itself; that of a release.
if(FUSE_STATIC)
  add_custom_command(TARGET fuse POST_BUILD
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${CMAKE_BINARY_DIR}/man"
    COMMAND fuse man-pages "${CMAKE_BINARY_DIR}/man"
    VERBATIM)
endif()

install(TARGETS fuse RUNTIME)
install(PROGRAMS scripts/qemu-vfio-bind.sh scripts/qemu-mig-setup.sh TYPE BIN)
install(DIRECTORY "${CMAKE_BINARY_DIR}/man/" TYPE MAN)
install(FILES completions/fuse.bash RENAME fuse
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES completions/_fuse DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES completions/fuse.fish
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
install(FILES packaging/agent.env.example packaging/orchestrator.env.example
  DESTINATION "${doc_dir}/examples")

# The units name the executable where it is installed.
foreach(unit fuse-agent fuse-orchestrator)
  install(FILES packaging/${unit}.service DESTINATION ${unit_dir})
  install(CODE "
    set(unit \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${unit_dir}/${unit}.service\")
    file(READ \"\${unit}\" text)
    string(REPLACE /usr/local/bin/ \"\${CMAKE_INSTALL_PREFIX}/bin/\" text \"\${text}\")
    file(WRITE \"\${unit}\" \"\${text}\")")
endforeach()

# What only the Debian package has, behind all the rest.
install(FILES packaging/debian/copyright DESTINATION "${doc_dir}" COMPONENT deb EXCLUDE_FROM_ALL)
install(FILES packaging/debian/changelog RENAME changelog.Debian DESTINATION "${doc_dir}"
  COMPONENT deb EXCLUDE_FROM_ALL)
install(FILES packaging/debian/lintian-overrides RENAME ${FUSE_PACKAGE}
  DESTINATION "${CMAKE_INSTALL_DATADIR}/lintian/overrides" COMPONENT deb EXCLUDE_FROM_ALL)
install(SCRIPT packaging/debian/finish.cmake COMPONENT deb EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ${FUSE_PACKAGE})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_INSTALL_CMAKE_PROJECTS
  "${CMAKE_BINARY_DIR};fuse;Unspecified;/;${CMAKE_BINARY_DIR};fuse;deb;/")
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The maintainers of fuse <maintainers@fuse.example>")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "jobs in virtual machines with whole GPUs or MIG instances
fuse runs the job of a Fusefile in a virtual machine of its own, follows its
output and exits with its code. GPUs are passed through whole, by VFIO, or as
MIG instances. The same executable is the client, the orchestrator of a fleet
and the agent of a GPU host.")
# The libraries are in the executable.  QEMU and what bakes images are not needed by
# clients and orchestrators.
set(CPACK_DEBIAN_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "qemu-system-x86, qemu-utils, ovmf, mmdebstrap, e2fsprogs, \
fakeroot, uidmap, lz4, xz-utils, zstd, ca-certificates")
# The Spectrum emulator has /usr/bin/fuse, fuse(1) and the completion for bash too.
set(CPACK_DEBIAN_PACKAGE_CONFLICTS fuse-emulator-common)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(script postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/packaging/debian/${script}")
endforeach()
include(CPack)
