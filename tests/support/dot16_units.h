/* tests/support/dot16_units.h -- products of bfloat16 factors by every unit of
 * runtime/kernels/ls_dot16.h, with numbers of all kinds among the factors: bits are the same in
 * each of the two orders of sums. */
#ifndef LS_TESTS_SUPPORT_DOT16_UNITS_H
#define LS_TESTS_SUPPORT_DOT16_UNITS_H

#include "tests/support/dot16_orders.h"
#include "tests/support/kernel_harness.h"

#include <float.h>

/* Which numbers a run has: usual ones; those whose products are about as small as f32 can be, and
 * subnormal factors; usual ones with some infinities, NaN and largest numbers; those whose products
 * are zeros of both signs. */
enum { USUAL, TINY, SPECIAL, ZEROS, UNIT_KINDS };

static inline uint64_t unit_random(uint64_t seed, int64_t i)
{
    uint64_t z = (seed * 1000003 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 32);
}

static inline double unit_number(int kind, uint64_t z)
{
    static const uint16_t special[] = {0x7f80, 0xff80, 0x7fc0, 0x7f7f,
                                       0xff7f, 0x0001, 0x8000, 0x0000};
    static const uint16_t zeros[] = {0x1c80, 0x9c80, 0x0000, 0x8000};
    uint16_t bits =
        (uint16_t)((z & 0x807f)
                   | (uint64_t)(kind == TINY ? 58 + (z >> 16) % 9 : 120 + (z >> 16) % 9) << 7);
    if (kind == TINY && (z >> 24) % 16 == 0)
        bits &= 0x807f;
    if (kind == SPECIAL && (z >> 24) % 512 == 0)
        bits = special[(z >> 40) % 8];
    if (kind == ZEROS)
        bits = zeros[(z >> 40) % 4];
    return ls_from_bf16((ls_bf16){bits});
}

/* Bits of element i, with one NaN for all. */
static inline uint32_t unit_bits(LsType type, const void *p, int64_t i)
{
    float v = (float)h_get(type, p, i, 4);
    return isnan(v) ? 0x7fc00000u : ls_bits32(v);
}

/* Objects of the nodes for units 0, 2 and, on x86, the instruction of the order. */
typedef struct Units {
    HObject object[3];
    int runs;                   /* the leading ones that this processor runs */
} Units;

/* At -O1 gcc fuses no multiply-adds, but does with this flag, as from -O2 on: what fuses is what
 * the tests need of -O2. */
#define UNIT_FLAGS "-O1 -fexpensive-optimizations -march=native "

/* Makes all factors bfloat16, or f32 that is rounded as it is packed, like a weight: in all four
 * ways by turns. */
static inline Units units_new(int order, int n, HNode *const node[])
{
    static const char *const flags[ORDERS][3] = {
        {UNIT_FLAGS "-DLS_DOT16_TILES=0 -DLS_DOT16_UNIT=0",
         UNIT_FLAGS "-DLS_DOT16_TILES=0 -DLS_DOT16_UNIT=2",
         UNIT_FLAGS "-mavx512f -mavx512bf16 -DLS_DOT16_TILES=0 -DLS_DOT16_UNIT=1"},
        {UNIT_FLAGS "-DLS_DOT16_TILES=1 -DLS_DOT16_UNIT=0",
         UNIT_FLAGS "-DLS_DOT16_TILES=1 -DLS_DOT16_UNIT=2",
         UNIT_FLAGS "-mavx512f -mamx-tile -mamx-bf16 -DLS_DOT16_TILES=1"}};
    Units u = {.runs = 2 + has_last_unit(order)};
    bool x86 = false;
#if defined __x86_64__
    x86 = true;
#endif
    for (int i = 0; i < n; i++) {
        HNode *h = node[i];
        h->node[1].rounds = LS_BF16;
        h->value[1].type = i % 4 > 1 ? LS_REAL : LS_BF16;
        h->value[2].type = i % 2 != 0 ? LS_REAL : LS_BF16;
    }
    for (int k = 0; k < 2 + x86; k++)
        u.object[k] = h_build("cc", flags[order][k], 4, true, n, node);
    if (u.runs < 3)
        printf("this processor has no %s: their kernels compile, and do not run\n",
               order == TILES ? "AMX tiles" : "dot products of bfloat16");
    return u;
}

/* Runs kernel i of every object on numbers of one kind; a bias is 0, some elements -0. Returns the
 * result; in[3]: the operands. Both go to units_free. */
static inline void *units_run(const Units *u, int i, const HNode *h, LsKernelId id, int kind,
                              double *in[])
{
    const int nin = h->node[1].nin;
    const LsValue *y = &h->value[nin + 1];
    void *got = NULL;
    for (int k = 0; k < 3; k++) {
        int64_t n = k < nin && h->operand[k].i != 0 ? ls_count(&h->value[k + 1].shape) : 0;
        in[k] = malloc((size_t)(n > 0 ? n : 1) * sizeof **in);
        for (int64_t j = 0; j < n; j++)
            in[k][j] = k == 2 ? (j % 3 != 0 ? 0. : -0.)
                              : unit_number(kind, unit_random((uint64_t)(10 * i + k), j));
    }
    for (int k = 0; k < u->runs; k++) {
        void *now = h_run(&u->object[k], i, h, id, (const double *const *)in, 1 + k);
        for (int64_t j = 0; k > 0 && j < ls_count(&y->shape); j++)
            H_ASSERT(unit_bits(y->type, got, j) == unit_bits(y->type, now, j),
                     "case %d, numbers of kind %d: object %d gives "
                     "%a, object 0 %a at %d",
                     i, kind, k, h_get(y->type, now, j, 4), h_get(y->type, got, j, 4), (int)j);
        if (k == 0)
            got = now;
        else
            free(now);
    }
    return got;
}

static inline void units_free(void *result, double *in[])
{
    free(result);
    for (int k = 0; k < 3; k++)
        free(in[k]);
}

#endif
