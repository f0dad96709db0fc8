#pragma once
#include <stdbool.h>
// The checks of argument types are for direct calls, with the option's name in the call.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

// libcurl needs about thirty other libraries, and loading them takes as long as starting the rest of the program. Only remote
// places use it, so it is loaded with the first of them. Its functions are valid when this has returned true once; false if it
// is not installed. One thread calls it.
bool drydock_curl_load(void);

extern struct {
  __typeof__(&curl_global_init) global_init;
  __typeof__(&curl_getdate) getdate;
  __typeof__(&curl_easy_init) easy_init;
  __typeof__(&curl_easy_reset) easy_reset;
  __typeof__(&curl_easy_setopt) easy_setopt;
  __typeof__(&curl_easy_perform) easy_perform;
  __typeof__(&curl_easy_getinfo) easy_getinfo;
  __typeof__(&curl_easy_strerror) easy_strerror;
  __typeof__(&curl_easy_cleanup) easy_cleanup;
  __typeof__(&curl_slist_append) slist_append;
  __typeof__(&curl_slist_free_all) slist_free_all;
} drydock_curl_functions;

static inline time_t drydock_curl_getdate(const char *text) { return drydock_curl_functions.getdate(text, NULL); }
static inline CURL *drydock_curl_init(void) { return drydock_curl_functions.easy_init(); }
static inline void drydock_curl_reset(CURL *handle) { drydock_curl_functions.easy_reset(handle); }
static inline CURLcode drydock_curl_perform(CURL *handle) { return drydock_curl_functions.easy_perform(handle); }
static inline void drydock_curl_cleanup(CURL *handle) { drydock_curl_functions.easy_cleanup(handle); }

static inline const char *drydock_curl_strerror(CURLcode code) {
  return drydock_curl_functions.easy_strerror(code);
}

static inline struct curl_slist *drydock_curl_append(struct curl_slist *list, const char *text) {
  return drydock_curl_functions.slist_append(list, text);
}

static inline void drydock_curl_free(struct curl_slist *list) { drydock_curl_functions.slist_free_all(list); }

// Swift cannot call variadic functions: one function for each type of argument.

static inline CURLcode drydock_curl_set_long(CURL *handle, CURLoption option, long value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode drydock_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode drydock_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode drydock_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode drydock_curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

// For writing, reading and headers, which have the same signature.
static inline CURLcode drydock_curl_set_transfer(CURL *handle, CURLoption option, curl_write_callback value) {
  return drydock_curl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode drydock_curl_set_seek(CURL *handle, curl_seek_callback value) {
  return drydock_curl_functions.easy_setopt(handle, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode drydock_curl_set_progress(CURL *handle, curl_xferinfo_callback value) {
  return drydock_curl_functions.easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, value);
}

static inline CURLcode drydock_curl_set_host_key_check(CURL *handle, curl_sshkeycallback value) {
  return drydock_curl_functions.easy_setopt(handle, CURLOPT_SSH_KEYFUNCTION, value);
}

static inline CURLcode drydock_curl_long(CURL *handle, CURLINFO info, long *value) {
  return drydock_curl_functions.easy_getinfo(handle, info, value);
}

static inline CURLcode drydock_curl_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
  return drydock_curl_functions.easy_getinfo(handle, info, value);
}

static inline CURLcode drydock_curl_socket(CURL *handle, curl_socket_t *value) {
  return drydock_curl_functions.easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}
