/* runtime/base/sha256.h -- SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104). */
#ifndef LS_RUNTIME_BASE_SHA256_H
#define LS_RUNTIME_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_SHA256 = 32, LS_SHA256_BLOCK = 64 };  /* bytes of a digest, and of a block */

typedef struct LsSha256 {
    uint32_t state[8];
    uint64_t bytes;             /* so far */
    unsigned char block[LS_SHA256_BLOCK];       /* the bytes of the last one, while it is not
                                                 * full */
} LsSha256;

void ls_sha256_start(LsSha256 *h);
void ls_sha256_add(LsSha256 *h, const void *data, size_t n);
void ls_sha256_end(LsSha256 *h, unsigned char digest[LS_SHA256]);

/* A key, ready for many texts. */
typedef struct LsHmac { LsSha256 inner, outer; } LsHmac;

LsHmac ls_hmac_key(const void *key, size_t n);
void ls_hmac(const LsHmac *key, const void *data, size_t n, unsigned char digest[LS_SHA256]);
/* Whether n bytes are the same, in a time that does not tell where they differ. */
bool ls_same_secret(const void *a, const void *b, size_t n);

#endif
