/* runtime/base/sha256.c -- see sha256.h. */
#include "runtime/base/sha256.h"

#include <string.h>

static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint32_t of_round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Round j of eight: what the standard calls a to h are the words from -j on. */
static inline void take_round(uint32_t s[8], int j, uint32_t more)
{
    uint32_t *const word[8] = {&s[-j & 7], &s[(1 - j) & 7], &s[(2 - j) & 7], &s[(3 - j) & 7],
                               &s[(4 - j) & 7], &s[(5 - j) & 7], &s[(6 - j) & 7], &s[(7 - j) & 7]};
    const uint32_t a = *word[0], b = *word[1], c = *word[2], e = *word[4], f = *word[5],
                   g = *word[6];
    const uint32_t one =
        *word[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + more;
    *word[3] += one;
    *word[7] = one + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void take_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (int k = 0; k < 16; k++)
        w[k] = big_endian(block + 4 * k);
    for (int k = 16; k < 64; k++)
        w[k] = w[k - 16] + (turn(w[k - 15], 7) ^ turn(w[k - 15], 18) ^ w[k - 15] >> 3) + w[k - 7]
               + (turn(w[k - 2], 17) ^ turn(w[k - 2], 19) ^ w[k - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int k = 0; k < 64; k += 8)
        for (int j = 0; j < 8; j++)     /* after eight rounds every word is in its place again */
            take_round(s, j, of_round[k + j] + w[k + j]);
    for (int k = 0; k < 8; k++)
        state[k] += s[k];
}

void ls_sha256_start(LsSha256 *h)
{
    *h = (LsSha256){.bytes = 0};
    memcpy(h->state, first, sizeof first);
}

void ls_sha256_add(LsSha256 *h, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        const size_t at = h->bytes % LS_SHA256_BLOCK, room = LS_SHA256_BLOCK - at,
                     part = n < room ? n : room;
        memcpy(h->block + at, p, part);
        h->bytes += part;
        p += part;
        n -= part;
        if (part == room)
            take_block(h->state, h->block);
    }
}

void ls_sha256_end(LsSha256 *h, unsigned char digest[LS_SHA256])
{
    static const unsigned char padding[LS_SHA256_BLOCK] = {0x80};
    const uint64_t bits = 8 * h->bytes;
    unsigned char length[8];
    for (int k = 0; k < 8; k++)
        length[k] = (unsigned char)(bits >> (56 - 8 * k));
    ls_sha256_add(h, padding,
                  1 + (2 * LS_SHA256_BLOCK - 9 - h->bytes % LS_SHA256_BLOCK) % LS_SHA256_BLOCK);
    ls_sha256_add(h, length, sizeof length);
    for (int k = 0; k < LS_SHA256; k++)
        digest[k] = (unsigned char)(h->state[k / 4] >> (24 - 8 * (k % 4)));
}

LsHmac ls_hmac_key(const void *key, size_t n)
{
    LsHmac h;
    unsigned char in[LS_SHA256_BLOCK] = {0}, out[LS_SHA256_BLOCK];
    ls_sha256_start(&h.inner);
    ls_sha256_start(&h.outer);
    if (n > sizeof in) {
        LsSha256 of_key;
        ls_sha256_start(&of_key);
        ls_sha256_add(&of_key, key, n);
        ls_sha256_end(&of_key, in);
    } else if (n > 0) {
        memcpy(in, key, n);
    }
    for (size_t k = 0; k < sizeof in; k++) {
        out[k] = in[k] ^ 0x5c;
        in[k] ^= 0x36;
    }
    ls_sha256_add(&h.inner, in, sizeof in);
    ls_sha256_add(&h.outer, out, sizeof out);
    return h;
}

void ls_hmac(const LsHmac *key, const void *data, size_t n, unsigned char digest[LS_SHA256])
{
    LsSha256 inner = key->inner, outer = key->outer;
    ls_sha256_add(&inner, data, n);
    ls_sha256_end(&inner, digest);
    ls_sha256_add(&outer, digest, LS_SHA256);
    ls_sha256_end(&outer, digest);
}

bool ls_same_secret(const void *a, const void *b, size_t n)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char differs = 0;
    for (size_t k = 0; k < n; k++)
        differs |= x[k] ^ y[k];
    return differs == 0;
}
