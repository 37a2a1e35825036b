/* tests/whole/library_client.c -- a program around any library with the prefix `net`.
 *
 *   client make TOTAL           writes TOTAL samples of each input to INPUT.npy
 *   client train TOTAL STEPS RATE SEED THREADS SAVE [LOAD]
 *                               updates over the same samples in order, each epoch anew
 *   client pair TOTAL STEPS     two instances in turns and a third in a thread: each as alone
 *   client check                refusals; nothing is written around state and arena
 *
 * CLASSES in the environment: labels are below it, else below 5. */
#define _GNU_SOURCE
#include "net.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_INPUTS = 8 };

#if NET_REAL_BYTES == 8
typedef double real;
#else
typedef float real;
#endif

static void *need(void *at)
{
    if (at == NULL)
        exit((fprintf(stderr, "no memory\n"), 1));
    return at;
}

static int must(int code, const net_error *e)
{
    if (code != 0)
        exit((fprintf(stderr, "error %d: %s\n", code, e->text), 1));
    return code;
}

/* ---- samples ---- */

static size_t width(net_type t)
{
    return t == NET_I64 ? 8 : t == NET_BOOL || t == NET_U8 ? 1 : t == NET_REAL ? NET_REAL_BYTES : 4;
}

static int64_t elements(const net_tensor *t)
{
    int64_t n = 1;
    for (int k = 1; k < t->rank; k++)
        n *= t->dim[k];
    return n;
}

/* Values of a sample depend on its number alone. */
static void *make_input(int k, int64_t total, net_tensor *t)
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

static void write_npy(const net_tensor *t, const void *all, int64_t total)
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

static void *room(size_t bytes)
{
    return need(aligned_alloc(NET_ALIGN, (bytes + NET_ALIGN - 1) / NET_ALIGN * NET_ALIGN));
}

/* Opened; of a private net draws and noise can be repeated. */
static net *opened(void *state, void *arena, int threads, uint64_t seed)
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
    Run r = {.total = total, .state = room(NET_STATE_BYTES), .arena = room(NET_ARENA_BYTES)};
    for (int k = 0; k < NET_INPUTS; k++)
        r.data[k] = make_input(k, total, &r.input[k]);
    r.it = opened(r.state, r.arena, threads, seed);
    return r;
}

static double step(Run *r, double rate)
{
    const void *in[MOST_INPUTS];
    net_error e;
    double loss;
    const int64_t left = r->total - r->next, n = left < NET_BATCH ? left : NET_BATCH;
    for (int k = 0; k < NET_INPUTS; k++)
        in[k] = (char *)r->data[k]
                + (size_t)(r->next * elements(&r->input[k])) * width(r->input[k].type);
    must(net_step(r->it, in, n, rate, &loss, &e), &e);
    r->next = (r->next + n) % r->total;
    return loss;
}

static void end(Run *r)
{
    net_close(r->it);
    free(r->state);
    free(r->arena);
    for (int k = 0; k < NET_INPUTS; k++)
        free(r->data[k]);
}

static void train(char **arg)
{
    net_error e;
    Run r = start(atoll(arg[0]), (uint64_t)atoll(arg[3]), atoi(arg[4]));
    if (arg[6] != NULL) {
        must(net_load(r.it, arg[6], &e), &e);
        r.next = NET_PRIVATE ? 0 : net_updates(r.it) * NET_BATCH % r.total;
    }
    for (int k = 0; k < atoi(arg[1]); k++)
        printf("%.*g\n", NET_REAL_BYTES == 8 ? 17 : 9, step(&r, atof(arg[2])));
    must(net_save(r.it, arg[5], &e), &e);
    end(&r);
}

/* ---- several instances ---- */

typedef struct Job { Run run; double *loss; int steps; } Job;

static void *work(void *arg)
{
    Job *j = arg;
    for (int k = 0; k < j->steps; k++)
        j->loss[k] = step(&j->run, 0.01);
    return NULL;
}

static void pair(int64_t total, int steps)
{
    enum { RUNS = 4 };
    Job job[RUNS];
    pthread_t thread;
    for (int k = 0; k < RUNS; k++)
        job[k] = (Job){start(total, 7, k == 1 ? 3 : 1),
                       need(calloc((size_t)steps, sizeof(double))), steps};
    work(&job[0]);              /* alone */
    if (pthread_create(&thread, NULL, work, &job[1]) != 0)
        exit(1);
    for (int k = 0; k < steps; k++)
        for (int r = 2; r < RUNS; r++)
            job[r].loss[k] = step(&job[r].run, 0.01);
    pthread_join(thread, NULL);
    for (int k = 1; k < RUNS; k++)
        if (memcmp(job[k].loss, job[0].loss, (size_t)steps * sizeof(double)) != 0
            || memcmp(job[k].run.state, job[0].run.state, NET_STATE_BYTES) != 0)
            exit((fprintf(stderr, "instance %d differs\n", k), 1));
    for (int k = 0; k < RUNS; k++) {
        end(&job[k].run);
        free(job[k].loss);
    }
    printf("alike\n");
}

/* ---- memory ---- */

/* `bytes` of memory that end where a page begins that no one may touch. */
static char *guarded(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, all + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (at == MAP_FAILED || mprotect(at, page, PROT_NONE) != 0
        || mprotect(at + page + all, page, PROT_NONE) != 0)
        exit(1);
    return at + page + (all - bytes) / NET_ALIGN * NET_ALIGN;
}

static void refused(const char *state, size_t ns, const char *arena, size_t na, const char *why)
{
    net_error e;
    net *it = net_open((void *)(uintptr_t)state, ns, (void *)(uintptr_t)arena, na, 1, 7, &e);
    if (it != NULL || e.code != NET_E_CALL || strstr(e.text, why) == NULL)
        exit((fprintf(stderr, "not refused: %s: %s\n", why, e.text), 1));
}

static void check(void)
{
    char *state = guarded(NET_STATE_BYTES), *arena = guarded(NET_ARENA_BYTES);
    refused(state, NET_STATE_BYTES - 1, arena, NET_ARENA_BYTES, "the state has");
    refused(state, NET_STATE_BYTES, arena, NET_ARENA_BYTES - 1, "the arena has");
    refused(state, NET_STATE_BYTES, arena + 1, NET_ARENA_BYTES, "the arena must lie");
    refused(NULL, NET_STATE_BYTES, arena, NET_ARENA_BYTES, "the state must lie");
    Run r = start(NET_PRIVATE ? 40 : NET_BATCH + 1, 7, 2);
    const double alone = step(&r, 0.01);
    net_error e;
    net_close(r.it);
    r.next = 0;
    r.it = opened(state, arena, 2, 7);
    if (step(&r, 0.01) != alone)
        exit((fprintf(stderr, "other memory, other loss\n"), 1));
    const void *in[MOST_INPUTS] = {NULL};
    double loss;
    if (net_step(r.it, in, 1, 0.01, &loss, &e) != NET_E_DATA
        || strstr(e.text, "there is no array for") == NULL)
        exit((fprintf(stderr, "no array, no error: %s\n", e.text), 1));
    for (int k = 0; k < NET_INPUTS; k++)
        in[k] = r.data[k];
    if (net_step(r.it, in, NET_BATCH + 1, 0.01, &loss, &e) != NET_E_DATA
        || net_step(r.it, in, NET_BATCH_LEAST - 1, 0.01, &loss, NULL) != NET_E_DATA)
        exit((fprintf(stderr, "a wrong number of samples is taken\n"), 1));
    net_tensor t;
    if (net_state(r.it, NET_TENSORS, &t) != NET_E_CALL || net_state(r.it, 0, &t) != 0
        || (char *)t.data < state || (char *)t.data >= state + NET_STATE_BYTES)
        exit((fprintf(stderr, "the table of the state is wrong\n"), 1));
    end(&(Run){.it = r.it});
    printf("refused\n");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "make") == 0 && argc > 2)
        for (int k = 0; k < NET_INPUTS; k++) {
            net_tensor t;
            void *all = make_input(k, atoll(argv[2]), &t);
            write_npy(&t, all, atoll(argv[2]));
            free(all);
        }
    else if (strcmp(what, "train") == 0 && argc > 7)
        train(argv + 2);
    else if (strcmp(what, "pair") == 0 && argc > 3)
        pair(atoll(argv[2]), atoi(argv[3]));
    else if (strcmp(what, "check") == 0)
        check();
    return 0;
}
