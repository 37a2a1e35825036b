/* tests/whole/library_two.c -- nets of different libraries in one process, whose symbols have the
 * same names: in turns, and each of them in a thread beside the others. Each run is as alone.
 *
 *   two STEPS OBJECT.so...      each made of library_turns.c and a library */
#include "library_turns.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

typedef struct Job { const Turns *of; void *run; double *loss; int steps; } Job;

static Job job(const Turns *of, int steps, int threads)
{
    Job j = {of, of->begin(threads), calloc((size_t)steps, sizeof(double)), steps};
    if (j.loss == NULL)
        exit(1);
    return j;
}

static void *work(void *arg)
{
    Job *j = arg;
    for (int k = 0; k < j->steps; k++)
        j->loss[k] = j->of->turn(j->run);
    return NULL;
}

static int alike(const Job *a, const Job *b)
{
    size_t bytes, other;
    const void *state = a->of->state(a->run, &bytes);
    return memcmp(a->loss, b->loss, (size_t)a->steps * sizeof *a->loss) == 0
           && memcmp(state, b->of->state(b->run, &other), bytes) == 0 && bytes == other;
}

static void end(Job *j)
{
    j->of->finish(j->run);
    free(j->loss);
}

static const Turns *load(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const Turns *t = object != NULL ? dlsym(object, "turns") : NULL;
    if (t == NULL)
        exit((fprintf(stderr, "%s\n", dlerror()), 1));
    return t;
}

int main(int argc, char **argv)
{
    const int steps = argc > 3 ? atoi(argv[1]) : 0, n = argc - 2;
    Job alone[MOST], here[MOST], there[MOST];
    pthread_t thread[MOST];
    if (steps < 1 || n > MOST)
        return 2;
    for (int k = 0; k < n; k++) {
        alone[k] = job(load(argv[k + 2]), steps, 1);
        work(&alone[k]);
    }
    if (alone[0].loss[steps - 1] == alone[1].loss[steps - 1])
        return fprintf(stderr, "the nets are the same\n"), 1;
    for (int k = 0; k < n; k++) {
        here[k] = job(alone[k].of, steps, 1);
        there[k] = job(alone[k].of, steps, 2);
        if (pthread_create(&thread[k], NULL, work, &there[k]) != 0)
            return 1;
    }
    for (int i = 0; i < steps; i++)
        for (int k = 0; k < n; k++)
            here[k].loss[i] = here[k].of->turn(here[k].run);
    for (int k = 0; k < n; k++) {
        pthread_join(thread[k], NULL);
        if (!alike(&alone[k], &here[k]) || !alike(&alone[k], &there[k]))
            return fprintf(stderr, "net %d differs\n", k), 1;
        end(&alone[k]);
        end(&here[k]);
        end(&there[k]);
    }
    printf("%d nets are as alone\n", n);
    return 0;
}
