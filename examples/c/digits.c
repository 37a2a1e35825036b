/* examples/c/digits.c -- a C program that trains: a small network learns to read digits, which are
 * drawn here. README.md has the three commands. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 16, TRAIN = 4096, TEST = 512, CLASSES = 10, EPOCHS = 7, THREADS = 2 };

typedef struct Digits { float (*image)[SIZE * SIZE]; int64_t *label; } Digits;

/* Rows of 5 pixels. */
static const char *const glyph[CLASSES] = {
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111", "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100",
};

static double uniform(void)     /* in [0, 1) */
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (double)(x >> 11) / 9007199254740992.0;
}

static void *need(void *at)
{
    if (at == NULL)
        exit((fprintf(stderr, "out of memory\n"), 1));
    return at;
}

/* n digits, each somewhere in its image, dim or bright, under noise. */
static Digits draw(int n)
{
    Digits d = {need(malloc((size_t)n * sizeof *d.image)),
                need(malloc((size_t)n * sizeof *d.label))};
    for (int k = 0; k < n; k++) {
        const int label = (int)(uniform() * CLASSES);
        const int top = (int)(uniform() * (SIZE - 7)), left = (int)(uniform() * (SIZE - 5));
        const float ink = (float)(0.5 + 0.5 * uniform());
        for (int i = 0; i < SIZE * SIZE; i++)
            d.image[k][i] = (float)(0.4 * uniform());
        for (int i = 0; i < 7 * 5; i++)
            if (glyph[label][i / 5 * 6 + i % 5] == '1')
                d.image[k][(top + i / 5) * SIZE + left + i % 5] += ink;
        d.label[k] = label;
    }
    return d;
}

static void must(int code, const net_error *e)
{
    if (code != NET_OK)
        exit((fprintf(stderr, "error %d: %s\n", code, e->text), 1));
}

/* The share of digits whose highest score is that of their label. */
static double accuracy(net *it, const Digits *d, int n)
{
    static float score[TEST][CLASSES];
    const void *input[] = {d->image, NULL};     /* no labels are needed for scores */
    void *output[] = {score};
    net_error e;
    int right = 0;
    must(net_predict(it, input, n, output, &e), &e);
    for (int k = 0; k < n; k++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = score[k][c] > score[k][best] ? c : best;
        right += best == d->label[k];
    }
    return (double)right / n;
}

int main(void)
{
    /* The program owns all memory of the training step; it could be static arrays as well. */
    void *state = need(aligned_alloc(NET_ALIGN, (NET_STATE_BYTES + NET_ALIGN - 1) / NET_ALIGN
                                     * NET_ALIGN));
    void *arena = need(aligned_alloc(NET_ALIGN, (NET_ARENA_BYTES + NET_ALIGN - 1) / NET_ALIGN
                                     * NET_ALIGN));
    const Digits train = draw(TRAIN), test = draw(TEST);
    net_error e;
    net *it = net_open(state, NET_STATE_BYTES, arena, NET_ARENA_BYTES, THREADS, 1, &e);
    must(it == NULL ? e.code : NET_OK, &e);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        double loss, sum = 0;
        for (int k = 0; k < TRAIN; k += NET_BATCH) {
            const void *input[] = {train.image[k], train.label + k};
            must(net_step(it, input, NET_BATCH, 4e-3, &loss, &e), &e);
            sum += loss * NET_BATCH;
        }
        printf("epoch %d  loss %.4f  accuracy %.4f\n", epoch, sum / TRAIN,
               accuracy(it, &test, TEST));
    }
    must(net_save(it, "digits.safetensors", &e), &e);
    printf("saved digits.safetensors after %lld updates\n", (long long)net_updates(it));
    net_close(it);
    free(state), free(arena);
    free(train.image), free(train.label), free(test.image), free(test.label);
    return 0;
}
