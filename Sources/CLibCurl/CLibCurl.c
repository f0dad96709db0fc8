#include "CLibCurl.h"

#include <dlfcn.h>

__typeof__(drydock_curl_functions) drydock_curl_functions;

bool drydock_curl_load(void) {
#ifdef __APPLE__
  void *library = dlopen("libcurl.4.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library) return false;
  bool found = true;
#define FIND(name) \
  drydock_curl_functions.name = (__typeof__(drydock_curl_functions.name))dlsym(library, "curl_" #name); \
  found = found && drydock_curl_functions.name;
  FIND(global_init)
  FIND(getdate)
  FIND(easy_init)
  FIND(easy_reset)
  FIND(easy_setopt)
  FIND(easy_perform)
  FIND(easy_getinfo)
  FIND(easy_strerror)
  FIND(easy_cleanup)
  FIND(slist_append)
  FIND(slist_free_all)
  return found && drydock_curl_functions.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}
