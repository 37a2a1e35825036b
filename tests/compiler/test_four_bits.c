/* tests/compiler/test_four_bits.c -- codes and scales of NF4 and FP4 beside those of bitsandbytes.
 *   test_four_bits FILE DOUBLE
 * FILE: cases of: count, block (int32); reals; then for NF4 and FP4: codes, scales
 * DOUBLE: cases of double quantisation: count, block, scales (int32); reals; codes of NF4, codes of
 * scales, what is added to these, the scale of each 256 of them, the values of all */
#include "compiler/packed/four_bits.h"
#include "compiler/packed/packed_tensor.h"
#include "runtime/ls_program.h"

#include <string.h>

#include "runtime/ls_unpack.h"  /* takes memcpy and integers from the headers above */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take(FILE *f, void *to, size_t bytes) { return fread(to, 1, bytes, f) == bytes; }

static int check(FILE *f, int64_t n, int64_t block)
{
    const size_t bytes = (size_t)(n + 1) / 2, blocks = (size_t)((n + block - 1) / block);
    float *x = malloc((size_t)n * 4), *want_scale = malloc(blocks * 4), *scale = malloc(blocks * 4);
    float *back = malloc((size_t)n * 4);
    uint8_t *want = malloc(bytes), *code = malloc(bytes);
    int bad = !take(f, x, (size_t)n * 4);
    for (int form = LS_NF4; form >= LS_FP4 && !bad; form--) {
        bad |= !take(f, want, bytes) || !take(f, want_scale, blocks * 4);
        ls_four_bits_encode((LsFourBits)form, x, block, n, code, scale);
        bad |= memcmp(code, want, bytes) != 0 || memcmp(scale, want_scale, blocks * 4) != 0;
        ls_four_bits_decode((LsFourBits)form, code, scale, block, n, back);
        for (int64_t i = 0; i < n; i++) /* no code is farther away than the widest gap's half */
            bad |= !(back[i] - x[i] <= scale[i / block] * 0.17f
                     && x[i] - back[i] <= scale[i / block] * 0.17f);
        if (bad)
            printf("FAIL form %d of %d reals, blocks of %d\n", form, (int)n, (int)block);
    }
    free(x), free(want_scale), free(scale), free(back), free(want), free(code);
    return bad;
}

/* A packed tensor, as the compiler writes it, beside a case of DOUBLE, and its values as the
 * runtime reads them. */
static int check_double(FILE *f, int64_t n, int64_t block, int64_t scales)
{
    const int64_t groups = (scales + LS_NESTED - 1) / LS_NESTED;
    const LsPackedTensor t = {
        .codes = {LS_CODES_NF4, n, n, 1, block, false, true},
        .values = {malloc((size_t)n * 4), LS_STORED_AS_F32}};
    const LsPackedParts at = ls_packed_parts(&t.codes);
    const LsPacked how = {LS_PACKED_NF4, n, n, 1, block, scales, at.scales, at.zeros, at.nested};
    uint8_t *code = malloc((size_t)n), *nest = malloc((size_t)scales);
    float *group = malloc(((size_t)groups + 1) * 4), *value = malloc((size_t)n * 4), offset = 0;
    char *made = NULL;
    size_t bytes = 0;
    int bad = !take(f, (void *)t.values.bytes, (size_t)n * 4)
              || !take(f, code, (size_t)(n + 1) / 2) || !take(f, nest, (size_t)scales)
              || !take(f, &offset, 4)
              || !take(f, group, (size_t)groups * 4) || !take(f, value, (size_t)n * 4);
    LsArena *a = ls_arena_new();
    FILE *to = open_memstream(&made, &bytes);
    bad |= !ls_packed_write(&t, a, to);
    fclose(to);
    group[groups] = offset;
    bad |= bytes != (size_t)at.end || ls_codes_scales(&t.codes) != scales
           || memcmp(made, code, (size_t)(n + 1) / 2) != 0
           || memcmp(made + at.scales, nest, (size_t)scales) != 0
           || memcmp(made + at.nested, group, ((size_t)groups + 1) * 4) != 0
           || ls_packed_bytes(&how) > at.end;
    /* bitsandbytes 0.50 gives all blocks of 256 the scale of the first. */
    for (int64_t i = 0; i < n && !bad && block < 256; i++) {
        const float got = ls_packed_at(&how, (const uint8_t *)made, i);
        bad |= memcmp(&got, &value[i], 4) != 0;
    }
    if (bad)
        printf("FAIL double quantisation of %d reals, blocks of %d\n", (int)n, (int)block);
    ls_arena_free(a);
    free((void *)t.values.bytes), free(code), free(nest), free(group), free(value), free(made);
    return bad;
}

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    int32_t head[2];
    int cases = 0, bad = f == NULL;
    for (; f != NULL && take(f, head, sizeof head); cases++)
        bad |= check(f, head[0], head[1]);
    if (f != NULL)
        fclose(f);
    FILE *d = argc > 2 ? fopen(argv[2], "rb") : NULL;
    int32_t three[3];
    bad |= d == NULL;
    for (; d != NULL && take(d, three, sizeof three); cases++)
        bad |= check_double(d, three[0], three[1], three[2]);
    if (d != NULL)
        fclose(d);
    printf("%d cases\n", cases);
    return bad || cases == 0;
}
