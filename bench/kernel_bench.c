/* bench/kernel_bench.c -- speed of generated convolutions in isolation.
 *
 *     kernel_bench [-b] [-d] [-t THREADS] [-f FLAGS] [SUBSTRING]
 *
 * prints GFLOP/s for the cases whose line contains SUBSTRING; -b: in mixed precision with bfloat16;
 * -d: without Winograd's algorithm. With one thread it measures processor time, which other jobs
 * disturb little; with several threads it measures wall time. Each figure is the best of several
 * runs; padding counts as work. */
#include <stdio.h>
#include <stdlib.h>
#define H_ASSERT(ok, ...) ((ok) ? (void)0 : (void)(fprintf(stderr, __VA_ARGS__), exit(1)))
#include "tests/support/kernel_harness.h"

#include <time.h>

typedef struct ConvCase { int64_t images, x, cin, cout, kernel, stride, pad, group; } ConvCase;
static const ConvCase convs[] = {
    {8, 56, 64, 64, 3, 1, 1, 1},     {8, 28, 128, 128, 3, 1, 1, 1},
    {8, 14, 256, 256, 3, 1, 1, 1},   {8, 7, 512, 512, 3, 1, 1, 1},
    {8, 56, 64, 128, 3, 2, 1, 1},    {8, 28, 128, 256, 3, 2, 1, 1},
    {8, 56, 64, 256, 1, 1, 0, 1},    {8, 56, 256, 64, 1, 1, 0, 1},
    {8, 14, 1024, 256, 1, 1, 0, 1},  {8, 56, 64, 128, 1, 2, 0, 1},
    {8, 224, 3, 64, 7, 2, 3, 1},     {2, 128, 64, 64, 3, 1, 1, 1},
    {2, 128, 3, 64, 3, 1, 1, 1},     {2, 64, 128, 128, 3, 1, 1, 1},
    {2, 16, 512, 512, 3, 1, 1, 1},   {2, 16, 1024, 512, 3, 1, 1, 1},
    {2, 32, 512, 256, 3, 1, 1, 1},   {8, 14, 512, 512, 3, 1, 1, 1},
    {2, 8, 1024, 1024, 3, 1, 1, 1},  {2, 128, 64, 2, 1, 1, 0, 1},
    {2, 16, 512, 1024, 2, 2, 0, 1},  {4, 28, 128, 32, 3, 1, 1, 1},
    {4, 28, 256, 128, 1, 1, 0, 1},   {4, 7, 128, 32, 3, 1, 1, 1},
    {8, 56, 128, 128, 3, 1, 1, 128}, {8, 28, 256, 256, 3, 2, 1, 256},
    {8, 28, 128, 128, 3, 1, 1, 32},  {1, 512, 16, 16, 3, 1, 1, 1},
    {1, 512, 32, 16, 3, 1, 1, 1},    {1, 256, 16, 32, 3, 1, 1, 1},
    {1, 256, 32, 32, 3, 1, 1, 1},    {1, 256, 64, 32, 3, 1, 1, 1},
};
enum { NCONV = sizeof convs / sizeof *convs, RUNS = 15 };

static double seconds(bool wall)
{
    struct timespec t;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rate(const HObject *o, int i, const HNode *h, LsKernelId id, int threads,
                   double flops)
{
    void *arg[6] = {0};
    int nin = h->node[1].nin;
    for (int k = 0; k <= nin; k++) {
        arg[k] = h_elements(h->value[k + 1].type, ls_count(&h->value[k + 1].shape), (uint64_t)k);
    }
    arg[nin + 1] = h_array(h_workspace(h, id, 4) / 4, 4);
    LsRun run = {.pool = o->pool_create(threads)};
    double best = INFINITY;
    o->kernel[i](&run, arg);
    int repeat = (int)(1e9 / flops) + 1;
    for (int r = 0; r < RUNS; r++) {
        double start = seconds(threads > 1);
        for (int q = 0; q < repeat; q++)
            o->kernel[i](&run, arg);
        best = fmin(best, (seconds(threads > 1) - start) / repeat);
    }
    o->pool_destroy(run.pool);
    for (int k = 0; k <= nin + 1; k++)
        free(arg[k]);
    return flops / best * 1e-9;
}

static void conv_nodes(const ConvCase *c, HNode *node[3])
{
    int64_t y = (c->x + 2 * c->pad - c->kernel) / c->stride + 1;
    LsShape xs = {4, {c->images, c->cin, c->x, c->x}}, ys = {4, {c->images, c->cout, y, y}};
    LsShape ws = {4, {c->cout, c->cin / c->group, c->kernel, c->kernel}};
    LsAttr at = {.window = {.n = 2,
                            .kernel = {c->kernel, c->kernel},
                            .stride = {c->stride, c->stride},
                            .dilation = {1, 1},
                            .pad_lo = {c->pad, c->pad},
                            .pad_hi = {c->pad, c->pad},
                            .group = c->group,
                            .x_dim = {c->x, c->x}}};
    node[0] = h_node(LS_OP_CONV, 2, (LsShape[]){xs, ws}, &ys, LS_LAST, &at);
    node[1] = h_node(LS_OP_CONV_DX, 2, (LsShape[]){ys, ws}, &xs, LS_LAST, &at);
    node[2] = h_node(LS_OP_CONV_DW, 2, (LsShape[]){ys, xs}, &ws, LS_LAST, &at);
}

/* Images in 16 bits, weights and their gradients in f32. */
static void narrow(HNode *node[3])
{
    h_coarse = true;
    for (int k = 0; k < 3; k++) {
        node[k]->node[1].rounds = node[k]->value[1].type = LS_BF16;
        node[k]->value[k < 2 ? 3 : 2].type = LS_BF16;
    }
}

int main(int argc, char **argv)
{
    int threads = 1, option;
    bool direct = false, brain = false;
    const char *flags = "-O3 -march=native -fno-math-errno -fno-trapping-math";
    while ((option = getopt(argc, argv, "bdt:f:")) != -1)
        if (option == 't')
            threads = atoi(optarg);
        else if (option == 'b')
            brain = true;
        else if (option == 'd')
            direct = true;
        else if (option == 'f')
            flags = optarg;
        else
            return 2;
    const char *only = optind < argc ? argv[optind] : "";
    HNode *node[3 * NCONV];
    for (int i = 0; i < NCONV; i++)
        conv_nodes(&convs[i], node + 3 * i);
    for (int i = 0; i < NCONV && brain; i++)
        narrow(node + 3 * i);
    HObject o = h_build("cc", flags, 4, direct, 3 * NCONV, node);
    printf("%-44s %8s %8s %8s\n", "convolution, GFLOP/s", "forward", "dX", "dW");
    for (int i = 0; i < NCONV; i++) {
        const ConvCase *c = &convs[i];
        char line[80];
        snprintf(line, sizeof line, "%dx%d->%d %dx%d/%d @%d group %d", (int)c->images, (int)c->cin,
                 (int)c->cout, (int)c->kernel, (int)c->kernel, (int)c->stride, (int)c->x,
                 (int)c->group);
        if (strstr(line, only) == NULL)
            continue;
        double flops = 2.0 * (double)ls_count(&node[3 * i]->value[3].shape)
            * (double)(c->cin / c->group * c->kernel * c->kernel);
        printf("%-44s", line);
        for (int k = 0; k < 3; k++) {
            printf(" %8.0f", rate(&o, 3 * i + k, node[3 * i + k], LS_K_CONV, threads, flops));
            fflush(stdout);
        }
        printf("\n");
    }
    return 0;
}
