/* compiler/packed/pack.c -- ls_packed_write: the bytes of a packed tensor. Codes that are made of
 * values are made some blocks at a time; their scales follow them in the file and are kept until
 * then. */
#include "compiler/packed/dynamic_codes.h"
#include "compiler/packed/four_bits.h"
#include "compiler/packed/half_bits.h"
#include "compiler/packed/packed_tensor.h"

#include <math.h>
#include <string.h>

typedef struct Writer {
    const LsPackedTensor *t;
    LsArena *arena;             /* of the values */
    FILE *to;
    int64_t at;                 /* bytes written */
    bool ok;
} Writer;

static void put(Writer *w, const void *bytes, int64_t n)
{
    w->ok = w->ok && (n == 0 || fwrite(bytes, 1, (size_t)n, w->to) == (size_t)n);
    w->at += n;
}

/* Zeros up to that place. */
static void fill(Writer *w, int64_t place)
{
    static const char zeros[64];
    while (w->at < place)
        put(w, zeros, place - w->at < 64 ? place - w->at : 64);
}

/* Codes of 8 bits: the block's largest magnitude is 127. */
static void encode_int8(const float *x, int64_t block, int64_t n, uint8_t *code, float *scale)
{
    for (int64_t i = 0; i < n; i++) {
        if (i % block == 0)
            scale[i / block] =
                ls_largest_magnitude(x + i, n - i < block ? n - i : block) / 127.0f;
        const float s = scale[i / block];
        code[i] = (uint8_t)(int8_t)(s > 0 ? nearbyintf(x[i] / s) : 0);
    }
}

static void encode_16(LsCodesForm form, const float *x, int64_t n, uint8_t *code)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t bits = form == LS_CODES_BF16 ? ls_brain_bits(x[i]) : ls_half_bits(x[i]);
        memcpy(code + 2 * i, &bits, 2);
    }
}

static void encode(const LsPackedCodes *c, const float *x, int64_t n, uint8_t *code, float *scale)
{
    if (c->form >= LS_CODES_BF16)
        encode_16(c->form, x, n, code);
    else if (c->form == LS_CODES_I8)
        encode_int8(x, c->block, n, code, scale);
    else
        ls_four_bits_encode((LsFourBits)c->form, x, c->block, n, code, scale);
}

/* Writes the codes of all values; `scale` gets the scales. */
static void put_codes(Writer *w, float *scale)
{
    enum { SOME = 1 << 16 };    /* elements: whole blocks */
    const LsPackedTensor *t = w->t;
    const LsPackedCodes *c = &t->codes;
    const int64_t some = c->block > 0 ? (SOME + c->block - 1) / c->block * c->block : SOME;
    const int64_t width = t->values.as == LS_STORED_AS_F32 ? 4 : 2;
    LsArena *room = ls_arena_new();
    float *x = ls_arena_alloc(room, (size_t)some, sizeof *x);
    uint8_t *code = ls_arena_alloc(room, (size_t)some, 2);
    for (int64_t i = 0; i < c->count; i += some) {
        const int64_t n = c->count - i < some ? c->count - i : some;
        ls_stored_floats(&t->values, i, n, x);
        encode(c, x, n, code, c->block > 0 ? scale + i / c->block : NULL);
        put(w, code, (n * ls_codes_bits(c->form) + 7) / 8);
        ls_arena_let_go(w->arena, t->values.bytes, (size_t)((i + n) * width));
    }
    ls_arena_free(room);
}

/* Their mean, as torch adds up a row: 8 sums side by side, of each fourth vector. */
static float mean(const float *x, int64_t n)
{
    enum { LANES = 8, SUMS = 4, ALL = LANES * SUMS };
    float sum[ALL] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + ALL <= n; i += ALL)
        for (int k = 0; k < ALL; k++)
            sum[k] += x[i + k];
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            sum[k] += x[i + k];
    for (; i < n; i++)
        rest += x[i];
    for (int k = LANES; k < ALL; k++)
        sum[k % LANES] += sum[k];
    for (int k = 0; k < LANES; k++)
        rest += sum[k];
    return n > 0 ? rest / (float)n : 0;
}

/* Double quantisation: the scales, less their mean, as codes of 8 bits. Returns the mean. */
static float nest(float *scale, int64_t n, uint8_t *code, float *group)
{
    float map[256];
    const float offset = mean(scale, n);
    ls_dynamic_map(map);
    for (int64_t i = 0; i < n; i++)
        scale[i] -= offset;
    for (int64_t i = 0; i < n; i += LS_NESTED_SCALES) {
        const int64_t some = n - i < LS_NESTED_SCALES ? n - i : LS_NESTED_SCALES;
        const float most = ls_largest_magnitude(scale + i, some);
        group[i / LS_NESTED_SCALES] = most;
        for (int64_t k = i; k < i + some; k++)
            code[k] = ls_dynamic_code(map, most > 0 ? scale[k] / most : 0);
    }
    return offset;
}

/* The scales, in codes or as they are, and the zero points. */
static void put_scales(Writer *w, float *scale)
{
    const LsPackedCodes *c = &w->t->codes;
    const LsPackedParts at = ls_packed_parts(c);
    const int64_t n = ls_codes_scales(c), groups = (n + LS_NESTED_SCALES - 1) / LS_NESTED_SCALES;
    if (!c->nested) {
        put(w, w->t->code != NULL ? (const void *)w->t->scale : scale, 4 * n);
        if (c->zeros) {
            fill(w, at.zeros);
            put(w, w->t->zero, n);
        }
        return;
    }
    LsArena *room = ls_arena_new();
    uint8_t *code = ls_arena_alloc(room, (size_t)n + 1, 1);
    float *group = ls_arena_alloc(room, (size_t)groups + 1, sizeof *group);
    group[groups] = nest(scale, n, code, group);
    put(w, code, n);
    fill(w, at.nested);
    put(w, group, 4 * (groups + 1));
    ls_arena_free(room);
}

bool ls_packed_write(const LsPackedTensor *t, LsArena *a, FILE *to)
{
    Writer w = {.t = t, .arena = a, .to = to, .ok = true};
    const LsPackedParts at = ls_packed_parts(&t->codes);
    const int64_t n = ls_codes_scales(&t->codes);
    LsArena *room = ls_arena_new();
    float *scale = ls_arena_alloc(room, (size_t)n + 1, sizeof *scale);
    if (t->code != NULL)
        put(&w, t->code, ls_codes_bytes(&t->codes));
    else
        put_codes(&w, scale);
    if (n > 0) {
        fill(&w, at.scales);
        put_scales(&w, scale);
    }
    fill(&w, at.end);
    ls_arena_free(room);
    return w.ok;
}
