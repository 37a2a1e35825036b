/* tests/whole/library_client.h -- what programs around a library with the prefix `net` have in
 * common: samples, and a run over them in guarded memory. CLASSES in the environment: labels are
 * below it, else below 5. */
#ifndef LS_TESTS_WHOLE_LIBRARY_CLIENT_H
#define LS_TESTS_WHOLE_LIBRARY_CLIENT_H

#include "guarded_memory.h"
#include "net.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 8 };

#if NET_REAL_BYTES == 8
typedef double real;
#else
typedef float real;
#endif

static inline void *need(void *at)
{
    if (at == NULL)
        exit((fprintf(stderr, "no memory\n"), 1));
    return at;
}

static inline int must(int code, const net_error *e)
{
    if (code != 0)
        exit((fprintf(stderr, "error %d: %s\n", code, e->text), 1));
    return code;
}

/* ---- samples ---- */

static inline size_t width(net_type t)
{
    return t == NET_I64                    ? 8
           : t == NET_BOOL || t == NET_U8 ? 1
           : t == NET_BF16                ? 2
           : t == NET_REAL                ? NET_REAL_BYTES
                                          : 4;
}

static inline int64_t elements(const net_tensor *t)
{
    int64_t n = 1;
    for (int k = 1; k < t->rank; k++)
        n *= t->dim[k];
    return n;
}

/* Values of a sample depend on its number alone. */
static inline void *make_input(int k, int64_t total, net_tensor *t)
{
    net_input(k, t);
    const int64_t n = elements(t);
    char *all = need(malloc((size_t)(total * n) * width(t->type)));
    const char *classes = getenv("CLASSES");
    const int64_t labels = classes != NULL ? atoll(classes) : 5;
    uint64_t x = 88172645463325252u + (uint64_t)k;
    for (int64_t i = 0; i < total * n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (t->type == NET_REAL)
            ((real *)(void *)all)[i] = (real)(x >> 40) / (1 << 24);
        else if (t->type == NET_I64)
            ((int64_t *)(void *)all)[i] = (int64_t)(x >> 33) % labels;
        else
            memset(all + (size_t)i * width(t->type), 0, width(t->type));
    }
    return all;
}

static inline void write_npy(const net_tensor *t, const void *all, int64_t total)
{
    char name[300], head[128] = "", dims[80] = "";
    const char *kind = t->type == NET_REAL ? NET_REAL_BYTES == 8 ? "<f8" : "<f4"
                       : t->type == NET_I64 ? "<i8" : "<i4";
    for (int k = 1; k < t->rank; k++)
        sprintf(dims + strlen(dims), " %" PRId64 ",", t->dim[k]);
    snprintf(name, sizeof name, "%s.npy", t->name);
    FILE *f = need(fopen(name, "wb"));
    int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': "
                     "(%" PRId64 ",%s), }", kind, total, dims);
    memset(head + n, ' ', sizeof head - (size_t)n);
    const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    head[117] = '\n';
    fwrite(magic, 1, 10, f);
    fwrite(head, 1, 118, f);
    fwrite(all, width(t->type), (size_t)(total * elements(t)), f);
    fclose(f);
}

/* ---- a run ---- */

typedef struct Run {
    net *it;
    void *state, *arena, *data[MOST_INPUTS];
    net_tensor input[MOST_INPUTS];
    int64_t total, next;
} Run;

/* Opened; of a private net draws and noise can be repeated. */
static inline net *opened(void *state, void *arena, int threads, uint64_t seed)
{
    net_error e;
    net *it = net_open(state, NET_STATE_BYTES, arena, NET_ARENA_BYTES, threads, seed, &e);
    must(it == NULL ? e.code : 0, &e);
#if NET_PRIVATE
    must(net_seed_noise(it, 7, &e), &e);
#endif
    return it;
}

static Run start(int64_t total, uint64_t seed, int threads)
{
    Run r = {.total = total,
             .state = guarded(NET_STATE_BYTES, NET_ALIGN),
             .arena = guarded(NET_ARENA_BYTES, NET_ALIGN)};
    for (int k = 0; k < NET_INPUTS; k++)
        r.data[k] = make_input(k, total, &r.input[k]);
    r.it = opened(r.state, r.arena, threads, seed);
    return r;
}

/* The samples from `from` on. */
static inline void inputs(const Run *r, int64_t from, const void *in[MOST_INPUTS])
{
    for (int k = 0; k < NET_INPUTS; k++)
        in[k] = (char *)r->data[k]
                + (size_t)(from * elements(&r->input[k])) * width(r->input[k].type);
}

static inline double step(Run *r, double rate)
{
    const void *in[MOST_INPUTS];
    net_error e;
    double loss;
    const int64_t left = r->total - r->next, n = left < NET_BATCH ? left : NET_BATCH;
    inputs(r, r->next, in);
    must(net_step(r->it, in, n, rate, &loss, &e), &e);
    r->next = (r->next + n) % r->total;
    return loss;
}

static inline void end(Run *r)
{
    net_close(r->it);
    unguard(r->state, NET_STATE_BYTES, NET_ALIGN);
    unguard(r->arena, NET_ARENA_BYTES, NET_ALIGN);
    for (int k = 0; k < NET_INPUTS; k++)
        free(r->data[k]);
}

#endif
