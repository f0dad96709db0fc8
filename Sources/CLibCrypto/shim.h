#pragma once
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
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

// The public key of a type that the parameters describe; NULL if libcrypto does not accept them. It frees what it gets.
static inline EVP_PKEY *crypto_public_key(const char *type, OSSL_PARAM_BLD *build) {
  OSSL_PARAM *parameters = build == NULL ? NULL : OSSL_PARAM_BLD_to_param(build);
  OSSL_PARAM_BLD_free(build);
  EVP_PKEY_CTX *context = parameters == NULL ? NULL : EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
  EVP_PKEY *key = NULL;
  if (context == NULL || EVP_PKEY_fromdata_init(context) != 1
      || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
    key = NULL;
  }
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(parameters);
  return key;
}

static inline EVP_PKEY *crypto_ec_public_key(const char *curve, const unsigned char *point, size_t count) {
  OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
  if (build == NULL || OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, curve, 0) != 1
      || OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, count) != 1) {
    OSSL_PARAM_BLD_free(build);
    return NULL;
  }
  return crypto_public_key("EC", build);
}

static inline EVP_PKEY *crypto_rsa_public_key(
    const unsigned char *modulus, size_t modulus_count, const unsigned char *exponent, size_t exponent_count) {
  OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
  BIGNUM *n = BN_bin2bn(modulus, (int)modulus_count, NULL), *e = BN_bin2bn(exponent, (int)exponent_count, NULL);
  EVP_PKEY *key = NULL;
  if (build != NULL && n != NULL && e != NULL && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1
      && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1) {
    key = crypto_public_key("RSA", build);
  } else {
    OSSL_PARAM_BLD_free(build);
  }
  BN_free(n);
  BN_free(e);
  return key;
}

// The DER form of an ECDSA signature; its length, or 0 if it does not fit.
static inline int crypto_ecdsa_signature(
    const unsigned char *r, size_t r_count, const unsigned char *s, size_t s_count, unsigned char *der, size_t room) {
  ECDSA_SIG *signature = ECDSA_SIG_new();
  BIGNUM *r_number = BN_bin2bn(r, (int)r_count, NULL), *s_number = BN_bin2bn(s, (int)s_count, NULL);
  if (signature == NULL || r_number == NULL || s_number == NULL
      || ECDSA_SIG_set0(signature, r_number, s_number) != 1) {
    BN_free(r_number);
    BN_free(s_number);
    ECDSA_SIG_free(signature);
    return 0;
  }
  int count = i2d_ECDSA_SIG(signature, NULL);
  if (count > 0 && (size_t)count <= room) count = i2d_ECDSA_SIG(signature, &der);
  else count = 0;
  ECDSA_SIG_free(signature);
  return count;
}
