#pragma once
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

// HKDF-SHA256 in one call: the parameter list of OpenSSL 3 points into everything that it is given, which takes
// one closure per value in Swift. Returns 1 when done.
static inline int crypto_hkdf_sha256(
    const void *key, size_t key_count, const void *salt, size_t salt_count, const void *info, size_t info_count,
    unsigned char *derived, size_t derived_count) {
  EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
  EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
  EVP_KDF_free(kdf);
  if (context == NULL) return 0;

  OSSL_PARAM parameters[5];
  size_t count = 0;
  parameters[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA2-256", 0);
  parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_count);
  // No salt and a salt of 32 zeros are the same to HKDF; libcrypto refuses an empty one.
  if (salt_count > 0) {
    parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_count);
  }
  parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_count);
  parameters[count] = OSSL_PARAM_construct_end();

  int done = EVP_KDF_derive(context, derived, derived_count, parameters);
  EVP_KDF_CTX_free(context);
  return done == 1;
}
