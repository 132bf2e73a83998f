/* A statically linked program must not load shared objects: they would bring a
 * second C library.  SQLite and OpenSSL ask for it all the same (extensions,
 * engines), and are told here that it is not possible. */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode) {
  (void)file;
  (void)mode;
  return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name) {
  (void)handle;
  (void)name;
  return NULL;
}

int dlclose(void *handle) {
  (void)handle;
  return -1;
}

char *dlerror(void) {
  static char message[] = "this program is static and loads no shared objects";
  return message;
}
