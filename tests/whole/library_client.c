/* tests/whole/library_client.c -- a program around any library with the prefix `net`.
 *
 *   client make TOTAL           writes TOTAL samples of each input to INPUT.npy
 *   client train TOTAL STEPS RATE SEED THREADS SAVE [LOAD]
 *                               updates over the same samples in order, each epoch anew
 *   client pair TOTAL STEPS     two instances in turns and a third in a thread: each as alone
 *   client check                refusals; memory that was used before is as good as new */
#define _GNU_SOURCE
#include "library_client.h"

#include <math.h>
#include <pthread.h>

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

/* ---- refusals ---- */

static void refused(const char *state, size_t ns, const char *arena, size_t na, const char *why)
{
    net_error e;
    net *it = net_open((void *)(uintptr_t)state, ns, (void *)(uintptr_t)arena, na, 1, 7, &e);
    if (it != NULL || e.code != NET_E_CALL || strstr(e.text, why) == NULL)
        exit((fprintf(stderr, "not refused: %s: %s\n", why, e.text), 1));
}

static void check(void)
{
    Run r = start(NET_PRIVATE ? 40 : NET_BATCH + 1, 7, 2);
    const char *state = r.state, *arena = r.arena;
    const double alone = step(&r, 0.01);
    net_close(r.it);
    refused(state, NET_STATE_BYTES - 1, arena, NET_ARENA_BYTES, "the state has");
    refused(state, NET_STATE_BYTES, arena, NET_ARENA_BYTES - 1, "the arena has");
    refused(state, NET_STATE_BYTES, arena + 1, NET_ARENA_BYTES, "the arena must lie");
    refused(NULL, NET_STATE_BYTES, arena, NET_ARENA_BYTES, "the state must lie");
    net_error e;
    r.next = 0;
    r.it = opened(r.state, r.arena, 2, 7);
    if (step(&r, 0.01) != alone)
        exit((fprintf(stderr, "memory that was used before, another loss\n"), 1));
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
    const double wrong[] = {-1e-9, NAN, INFINITY, 1e300};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        if (net_step(r.it, in, NET_BATCH_LEAST, wrong[k], &loss, &e) != NET_E_CALL
            || strstr(e.text, "the rate is") == NULL || net_updates(r.it) != 1)
            exit((fprintf(stderr, "the rate %g is taken\n", wrong[k]), 1));
    net_tensor t;
    if (net_state(r.it, NET_TENSORS, &t) != NET_E_CALL || net_state(r.it, 0, &t) != 0
        || (const char *)t.data < state || (const char *)t.data >= state + NET_STATE_BYTES)
        exit((fprintf(stderr, "the table of the state is wrong\n"), 1));
    end(&r);
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
