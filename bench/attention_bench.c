/* bench/attention_bench.c -- generated attention and its gradient in isolation, for
 * bench/attention.py.
 *
 *     attention_bench [-t THREADS] [-f FLAGS] [-w WAY]
 *
 * reads lines "BATCH HEADS GROUPS TOKENS SIZE CAUSAL" up to a line "go" and compiles their kernels.
 * Then, for each number of a case that it reads, it prints the best seconds of four ways: forward
 * and gradient in f32, forward and gradient in bf16; -w: of this one alone, for a profiler. With
 * one thread they are processor time. */
#include <stdio.h>
#include <stdlib.h>
#define H_ASSERT(ok, ...) ((ok) ? (void)0 : (void)(fprintf(stderr, __VA_ARGS__), exit(1)))
#include "tests/support/kernel_harness.h"

#include <time.h>

typedef struct Case { int64_t batch, heads, groups, tokens, size; int causal; } Case;
enum { MOST = 16, WAYS = 4, RUNS = 3 };        /* forward and backward, f32 and bf16 */

static double seconds(bool wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* q, k and v have tokens before heads, as products make them. */
static HNode *node_of(const Case *c, bool back, bool brain)
{
    const LsShape q = {4, {c->batch, c->tokens, c->heads, c->size}},
                  k = {4, {c->batch, c->tokens, c->groups, c->size}},
                  lse = {4, {c->batch, c->heads, c->tokens, 1}};
    const LsShape shape[2][9] = {{q, k, k, q, lse}, {q, q, lse, q, k, k, q, k, k}};
    const int nin = back ? 6 : 3, nout = back ? 3 : 2;
    HNode *h = calloc(1, sizeof *h);
    h->arena = ls_arena_new();
    h->g = (LsGraph){.value = h->value, .nvalue = (uint32_t)(nin + nout) + 1, .node = h->node,
                     .nnode = 2, .operand = h->operand, .noperand = (uint32_t)nin,
                     .arena = h->arena};
    for (int i = 0; i < nin + nout; i++) {
        const bool statistic = shape[back][i].dim[3] == 1;
        h->value[i + 1] = (LsValue){.name = "v", .kind = LS_V_TEMP, .shape = shape[back][i],
                                    .type = brain && !statistic ? LS_BF16 : LS_REAL};
        if (i < nin)
            h->operand[i].i = (uint32_t)i + 1;
    }
    h->node[1] = (LsNode){.op = back ? LS_OP_ATTENTION_GRAD : LS_OP_ATTENTION,
                          .nin = (uint16_t)nin, .nout = (uint16_t)nout,
                          .out = (uint32_t)nin + 1, .name = "n",
                          .rounds = brain ? LS_BF16 : LS_REAL};
    h->node[1].attr.attention =
        (LsAttentionAttr){.scale = 1 / sqrt((double)c->size), .causal = c->causal,
                          .by_token = LS_Q_BY_TOKEN | LS_K_BY_TOKEN | LS_V_BY_TOKEN
                                      | LS_Y_BY_TOKEN};
    return h;
}

/* Arrays of a node's operands and results. */
typedef struct Arrays { void *at[10]; } Arrays;

static Arrays arrays_of(const HNode *h)
{
    Arrays a = {{0}};
    for (int i = 0; i < h->node[1].nin + h->node[1].nout; i++)
        a.at[i] = h_elements(h->value[i + 1].type, ls_count(&h->value[i + 1].shape), (uint64_t)i);
    return a;
}

static double best_of(LsKernel kernel, LsRun *run, void *const arg[], bool wall)
{
    double best = INFINITY;
    for (int r = 0; r < RUNS; r++) {
        const double start = seconds(wall);
        kernel(run, arg);
        best = fmin(best, seconds(wall) - start);
    }
    return best;
}

int main(int argc, char **argv)
{
    int threads = 1, option, only = -1, n = 0;
    const char *flags = "-O3 -march=native -fno-math-errno -fno-trapping-math";
    while ((option = getopt(argc, argv, "t:f:w:")) != -1)
        if (option == 't')
            threads = atoi(optarg);
        else if (option == 'f')
            flags = optarg;
        else if (option == 'w')
            only = atoi(optarg);
        else
            return 2;
    Case c[MOST];
    HNode *node[WAYS * MOST];
    Arrays at[WAYS * MOST];
    char line[128];
    while (n < MOST && fgets(line, sizeof line, stdin) != NULL && strcmp(line, "go\n") != 0) {
        int64_t *const to[] = {&c[n].batch, &c[n].heads, &c[n].groups, &c[n].tokens, &c[n].size};
        char *rest = line;
        for (int k = 0; k < 5; k++)
            *to[k] = strtoll(rest, &rest, 10);
        c[n].causal = (int)strtol(rest, &rest, 10);
        for (int w = 0; w < WAYS; w++) {
            node[WAYS * n + w] = node_of(&c[n], w % 2, w / 2);
            at[WAYS * n + w] = arrays_of(node[WAYS * n + w]);
        }
        n++;
    }
    const HObject o = h_build("cc", flags, 4, false, WAYS * n, node);
    LsRun run = {.pool = o.pool_create(threads)};
    while (fgets(line, sizeof line, stdin) != NULL) {
        const int i = atoi(line);
        H_ASSERT(i >= 0 && i < n, "no case %d\n", i);
        for (int w = 0; w < WAYS; w++)
            printf("%.9f ", only >= 0 && w != only ? 0
                                                   : best_of(o.kernel[WAYS * i + w], &run,
                                                             at[WAYS * i + w].at, threads > 1));
        printf("\n");
        fflush(stdout);
    }
    o.pool_destroy(run.pool);
    return 0;
}
