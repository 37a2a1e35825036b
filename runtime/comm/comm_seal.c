/* runtime/comm/comm_seal.c -- see comm_seal.h. Words are of 7 bytes: less than the modulus, so that
 * other bytes are other words. Four sums go on side by side, as one multiplication waits for the
 * one before. */
#include "runtime/comm/comm_seal.h"

#include <string.h>

enum { WORD = 7, WORDS = 4, BLOCK = WORD * WORDS };
#define PRIME ((UINT64_C(1) << 61) - 1)

/* a, b < 2^62; the result is less than 2^61 + 1, and not reduced to the end. */
static uint64_t times(uint64_t a, uint64_t b)
{
    const unsigned __int128 p = (unsigned __int128)a * b;
    const uint64_t low = (uint64_t)p & PRIME, high = (uint64_t)(p >> 61), sum = low + high;
    return (sum & PRIME) + (sum >> 61);
}

static uint64_t reduced(uint64_t x)
{
    x = (x & PRIME) + (x >> 61);
    return x >= PRIME ? x - PRIME : x;
}

static uint64_t little_endian(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

LsSeal ls_seal_key(const unsigned char secret[LS_SHA256])
{
    static const char of_place[] = "place";
    unsigned char digest[LS_SHA256];
    LsSeal s = {.on = true, .key = ls_hmac_key(secret, LS_SHA256)};
    ls_hmac(&s.key, of_place, sizeof of_place, digest);
    s.place[0] = reduced(little_endian(digest));
    if (s.place[0] < 2)
        s.place[0] = 2;
    for (int k = 1; k < WORDS; k++)
        s.place[k] = reduced(times(s.place[k - 1], s.place[0]));
    return s;
}

static void add_block(const LsSeal *s, uint64_t sum[WORDS], const unsigned char *p)
{
    const uint64_t seven = (UINT64_C(1) << 8 * WORD) - 1;
    for (int k = 0; k < WORDS - 1; k++)
        sum[k] = times(sum[k], s->place[WORDS - 1]) + (little_endian(p + WORD * k) & seven);
    sum[WORDS - 1] =
        times(sum[WORDS - 1], s->place[WORDS - 1]) + (little_endian(p + BLOCK - 8) >> 8);
}

void ls_seal_add(const LsSeal *s, LsSealSum *sum, const void *data, int64_t bytes)
{
    const unsigned char *p = data;
    if (sum->nrest > 0) {
        const int room = BLOCK - sum->nrest, n = bytes < room ? (int)bytes : room;
        memcpy(sum->rest + sum->nrest, p, (size_t)n);
        sum->nrest += n;
        p += n;
        bytes -= n;
        if (sum->nrest < BLOCK)
            return;
        add_block(s, sum->sum, sum->rest);
        sum->nrest = 0;
    }
    uint64_t now[WORDS];
    memcpy(now, sum->sum, sizeof now);
    for (; bytes >= BLOCK; bytes -= BLOCK, p += BLOCK)
        add_block(s, now, p);
    memcpy(sum->sum, now, sizeof now);
    if (bytes > 0)
        memcpy(sum->rest, p, (size_t)bytes);
    sum->nrest = (int)bytes;
}

void ls_seal_head(const LsSeal *s, const LsSealHead *h, uint64_t of[2])
{
    unsigned char digest[LS_SHA256];
    ls_hmac(&s->key, h, sizeof *h, digest);
    memcpy(of, digest, 2 * sizeof *of);
}

uint64_t ls_seal_text(const LsSeal *s, const void *text, size_t n)
{
    unsigned char digest[LS_SHA256];
    if (!s->on)
        return 0;
    ls_hmac(&s->key, text, n, digest);
    return little_endian(digest);
}

uint64_t ls_seal_bytes(const LsSeal *s, const LsSealSum *sum, uint64_t hides)
{
    LsSealSum last = *sum;
    uint64_t all = 0;
    if (last.nrest > 0) {
        memset(last.rest + last.nrest, 0, (size_t)(BLOCK - last.nrest));
        add_block(s, last.sum, last.rest);
    }
    for (int k = 0; k < WORDS; k++)
        all = times(all, s->place[0]) + reduced(last.sum[k]);
    return reduced(times(reduced(all), s->place[0])) + hides;
}
