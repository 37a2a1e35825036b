/* tests/compiler/test_four_bits.c -- codes and scales of NF4 and FP4 beside those of bitsandbytes.
 *   test_four_bits FILE    cases of: count, block (int32); reals; then for NF4 and FP4: codes,
 *                          scales */
#include "compiler/packed/four_bits.h"

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

int main(int argc, char **argv)
{
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    int32_t head[2];
    int cases = 0, bad = f == NULL;
    for (; f != NULL && take(f, head, sizeof head); cases++)
        bad |= check(f, head[0], head[1]);
    if (f != NULL)
        fclose(f);
    printf("%d cases\n", cases);
    return bad || cases == 0;
}
