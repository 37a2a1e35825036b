/* runtime/ls_chacha.h -- ChaCha20 (D. J. Bernstein; RFC 8439): bits that nobody can tell from
 * random ones, or foresee from others, without the key.
 *
 * One text for C11 and for CUDA C++, for kernels and for the trainer. A block is a function of its
 * arguments alone, so blocks may be computed in any order, and again. The rounds are written out:
 * loops over blocks of neighbouring counters are then vectorised. */
#ifndef LS_CHACHA_H
#define LS_CHACHA_H

#ifndef LS_EACH_FN
#define LS_EACH_FN static inline
#endif

enum { LS_KEY_WORDS = 8, LS_BLOCK_WORDS = 16 };

#define LS_TURN(x, bits) ((x) << (bits) | (x) >> (32 - (bits)))
#define LS_QUARTER(a, b, c, d) \
    a += b; d ^= a; d = LS_TURN(d, 16); c += d; b ^= c; b = LS_TURN(b, 12); \
    a += b; d ^= a; d = LS_TURN(d, 8); c += d; b ^= c; b = LS_TURN(b, 7);
#define LS_TWO_ROUNDS                                                                              \
    LS_QUARTER(x0, x4, x8, x12)                                                                    \
    LS_QUARTER(x1, x5, x9, x13) LS_QUARTER(x2, x6, x10, x14) LS_QUARTER(x3, x7, x11, x15)          \
        LS_QUARTER(x0, x5, x10, x15) LS_QUARTER(x1, x6, x11, x12) LS_QUARTER(x2, x7, x8, x13)      \
            LS_QUARTER(x3, x4, x9, x14)

/* The block of a key, a counter and a nonce (RFC 8439, section 2.3): words of 4 bytes, the lowest
 * byte first. */
LS_EACH_FN void ls_chacha_block(const uint32_t key[LS_KEY_WORDS], uint32_t counter, uint32_t nonce0,
                                uint32_t nonce1, uint32_t nonce2, uint32_t to[LS_BLOCK_WORDS])
{
    /* "expand 32-byte k" */
    uint32_t x0 = 0x61707865u, x1 = 0x3320646eu, x2 = 0x79622d32u, x3 = 0x6b206574u;
    uint32_t x4 = key[0], x5 = key[1], x6 = key[2], x7 = key[3], x8 = key[4], x9 = key[5],
             x10 = key[6], x11 = key[7];
    uint32_t x12 = counter, x13 = nonce0, x14 = nonce1, x15 = nonce2;
    LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS
        LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS LS_TWO_ROUNDS to[0] = x0 + 0x61707865u,
                                                                to[1] = x1 + 0x3320646eu,
                                                                to[2] = x2 + 0x79622d32u,
                                                                to[3] = x3 + 0x6b206574u;
    to[4] = x4 + key[0], to[5] = x5 + key[1], to[6] = x6 + key[2], to[7] = x7 + key[3];
    to[8] = x8 + key[4], to[9] = x9 + key[5], to[10] = x10 + key[6], to[11] = x11 + key[7];
    to[12] = x12 + counter, to[13] = x13 + nonce0, to[14] = x14 + nonce1, to[15] = x15 + nonce2;
}

#endif
