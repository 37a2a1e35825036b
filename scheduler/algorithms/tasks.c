/* scheduler/algorithms/tasks.c -- see the header. */
#include "scheduler/algorithms/tasks.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct LsTask {
    void (*run)(void *what);
    void *what;
    pthread_t thread;
    bool running;
};

static void *run_task(void *task)
{
    const LsTask *t = task;
    t->run(t->what);
    return NULL;
}

LsTask *ls_task_start(void (*run)(void *what), void *what)
{
    LsTask *t = malloc(sizeof *t);
    if (t == NULL) {
        run(what);
        return NULL;
    }
    *t = (LsTask){.run = run, .what = what};
    t->running = pthread_create(&t->thread, NULL, run_task, t) == 0;
    if (!t->running)
        run(what);
    return t;
}

void ls_task_wait(LsTask *task)
{
    if (task != NULL && task->running)
        pthread_join(task->thread, NULL);
    free(task);
}

typedef struct Jobs {
    void (*job)(void *what, uint32_t k);
    void *what;
    uint32_t n;
    atomic_uint next;
} Jobs;

static void take_jobs(void *jobs)
{
    Jobs *j = jobs;
    for (uint32_t k; (k = atomic_fetch_add(&j->next, 1)) < j->n;)
        j->job(j->what, k);
}

int ls_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void ls_side_by_side(uint32_t n, void (*job)(void *what, uint32_t k), void *what)
{
    enum { MOST = 16 };
    Jobs jobs = {.job = job, .what = what, .n = n};
    LsTask *helper[MOST];
    int processors = ls_processors();
    uint32_t more = processors < 1 ? 0 : processors < MOST ? (uint32_t)processors - 1 : MOST - 1;
    if (more >= n)
        more = n > 0 ? n - 1 : 0;
    for (uint32_t k = 0; k < more; k++)
        helper[k] = ls_task_start(take_jobs, &jobs);
    take_jobs(&jobs);
    for (uint32_t k = 0; k < more; k++)
        ls_task_wait(helper[k]);
}
