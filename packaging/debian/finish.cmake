# Brings what was installed below DESTDIR into the form of a Debian package.
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# zsh of Debian does not look into site-functions of /usr.
file(MAKE_DIRECTORY "${root}/share/zsh/vendor-completions")
file(RENAME "${root}/share/zsh/site-functions/_fuse" "${root}/share/zsh/vendor-completions/_fuse")
file(REMOVE_RECURSE "${root}/share/zsh/site-functions")

file(GLOB texts "${root}/share/man/man*/*" "${root}/share/doc/fuse-gpu/changelog.Debian")
execute_process(COMMAND gzip --best --no-name --force ${texts} COMMAND_ERROR_IS_FATAL ANY)
