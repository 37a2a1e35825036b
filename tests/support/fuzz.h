/* tests/support/fuzz.h -- damaged copies of small files, for tests of readers: the same on every
 * machine.
 *
 * LS_FUZZ_SEED and LS_FUZZ_ROUNDS change which copies are made and how many (per kind of file);
 * LS_FUZZ_FIRST begins with a later round, to come to one quickly. */
#ifndef LS_TESTS_SUPPORT_FUZZ_H
#define LS_TESTS_SUPPORT_FUZZ_H

#include "tests/support/less.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Dice { uint64_t state; } Dice;

static inline uint32_t roll(Dice *d, uint32_t below)    /* xorshift64*, the same everywhere */
{
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return (uint32_t)((d->state * 2685821657736338717u) >> 33) % below;
}

/* One file under damage: a growing buffer. */
typedef struct Victim { unsigned char *byte; size_t n, room; } Victim;

static inline void spot_bytes(Dice *d, Victim *v)
{
    static const unsigned char odd[] = {0,   1,    0x7f, 0x80, 0xff, 0xfe,
                                        '"', '\\', '\n', '{',  '-',  '9'};
    unsigned char *p = &v->byte[roll(d, (uint32_t)v->n)];
    switch (roll(d, 3)) {
    case 0: *p ^= (unsigned char)(1u << roll(d, 8)); break;
    case 1: *p = odd[roll(d, sizeof odd)]; break;
    default: *p = v->byte[roll(d, (uint32_t)v->n)]; break;
    }
}

/* Writes an extreme number of 1, 2, 4 or 8 bytes, in either byte order, where a length may
 * stand. */
static inline void spot_length(Dice *d, Victim *v)
{
    const uint64_t far[] = {0,
                            1,
                            v->n,
                            v->n - 1,
                            v->n + 1,
                            UINT64_MAX,
                            INT64_MAX,
                            (uint64_t)INT64_MIN,
                            UINT32_MAX,
                            INT32_MAX,
                            UINT64_C(1) << 31,
                            UINT64_C(1) << 62,
                            UINT16_MAX};
    size_t bytes = (size_t)1 << roll(d, 4);
    bool big = roll(d, 2) == 0;
    uint64_t value = far[roll(d, sizeof far / sizeof *far)];
    if (v->n < bytes)
        return;
    unsigned char *p = &v->byte[roll(d, (uint32_t)(v->n - bytes + 1))];
    for (size_t k = 0; k < bytes; k++)
        p[big ? bytes - 1 - k : k] = (unsigned char)(value >> 8 * k);
}

/* Replaces `old` bytes at `at` by n others, as far as there is room. */
static inline void replace(Victim *v, size_t at, size_t old, const void *with, size_t n)
{
    if (v->n - old + n > v->room)
        return;
    memmove(v->byte + at + n, v->byte + at + old, v->n - at - old);
    memcpy(v->byte + at, with, n);
    v->n = v->n - old + n;
}

/* Replaces the number in decimal digits that is nearest behind a random place. */
static inline void spot_number(Dice *d, Victim *v)
{
    static const char *const far[] = {"0",
                                      "1",
                                      "-1",
                                      "7",
                                      "65536",
                                      "2147483648",
                                      "4294967295",
                                      "4294967296",
                                      "9007199254740992",
                                      "140737488355328",
                                      "9223372036854775807",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "0.5",
                                      "1e300",
                                      "1e999",
                                      "-0",
                                      "00",
                                      "99999999999999999999999999999999999999999"};
    size_t at = roll(d, (uint32_t)v->n), end;
    while (at < v->n && (v->byte[at] < '0' || v->byte[at] > '9'))
        at++;
    for (end = at; end < v->n && v->byte[end] >= '0' && v->byte[end] <= '9';)
        end++;
    const char *text = far[roll(d, sizeof far / sizeof *far)];
    if (end > at)
        replace(v, at, end - at, text, strlen(text));
}

/* Deletes, doubles or moves a piece. */
static inline void spot_piece(Dice *d, Victim *v)
{
    unsigned char piece[256];
    size_t most = v->n < sizeof piece ? v->n : sizeof piece;
    size_t n = 1 + roll(d, (uint32_t)(roll(d, 2) == 0 && most > 8 ? 8 : most));
    size_t from = roll(d, (uint32_t)(v->n - n + 1)), to = roll(d, (uint32_t)(v->n - n + 1));
    memcpy(piece, v->byte + from, n);
    switch (roll(d, 3)) {
    case 0: if (n < v->n) replace(v, from, n, "", 0); break;
    case 1: replace(v, to, 0, piece, n); break;
    default: replace(v, to, n, piece, n); break;
    }
}

/* Returns a damaged copy of n > 0 bytes, of exactly *size > 0 bytes, so that sanitizers see the
 * first byte read behind it; free it. */
static inline unsigned char *damaged(Dice *d, const void *bytes, size_t n, size_t *size)
{
    Victim v = {malloc(2 * n + 1024), n, 2 * n + 1024};
    memcpy(v.byte, bytes, n);
    for (uint32_t hits = 1 + roll(d, 3); hits > 0; hits--)
        switch (roll(d, 8)) {
        case 0: case 1: case 2: spot_bytes(d, &v); break;
        case 3: case 4: spot_length(d, &v); break;
        case 5: case 6: spot_number(d, &v); break;
        default: spot_piece(d, &v); break;
        }
    if (roll(d, 10) == 0)
        v.n = 1 + roll(d, (uint32_t)v.n);
    unsigned char *exact = malloc(v.n);
    memcpy(exact, v.byte, v.n);
    free(v.byte);
    *size = v.n;
    return exact;
}

static inline uint64_t fuzz_env(const char *name, uint64_t absent)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : absent;
}

/* Calls try with `rounds` damaged copies (20 times as many for whole sets); each round has dice of
 * its own. */
static inline void fuzz(const void *bytes, size_t n, int rounds,
                        void (*try)(const unsigned char *bytes, size_t n, uint64_t round, Dice *d))
{
    uint64_t seed = fuzz_env("LS_FUZZ_SEED", 20250101), first = fuzz_env("LS_FUZZ_FIRST", 0);
    uint64_t end = first + fuzz_env("LS_FUZZ_ROUNDS", (uint64_t)tests_part(20 * rounds, rounds));
    for (uint64_t round = first; round < end; round++) {
        Dice d = {(seed * UINT64_C(0x9e3779b97f4a7c15))
                  ^ (round + 1) * UINT64_C(0xd1b54a32d192ed03)};
        size_t size;
        d.state += d.state == 0;
        unsigned char *copy = damaged(&d, bytes, n, &size);
        try(copy, size, round, &d);
        free(copy);
    }
}

/* ---- tests/support/fuzz_limits.c, for tests linked with it ---- */

/* From now on the program's own allocations may take `bytes` each; a larger one ends the test. 0:
 * any. */
void fuzz_allow(size_t bytes);

#endif
