/* runtime/cuda/cuda_follow.c -- recordings with explicit dependencies between steps.
 *
 * All steps are issued to one stream, so libraries need not know of this. The stream's capture
 * dependencies decide what the next work waits for, and the runtime may replace them during a
 * recording: before each step, they become the last nodes of the steps that it depends on. */
#include "runtime/cuda/cuda_follow.h"

#include "runtime/cuda/cuda_error.h"

#include <stdlib.h>

/* The nodes that the next recorded work would wait for. */
static cudaError_t get_ends(cudaStream_t s, const cudaGraphNode_t **node, size_t *n)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    unsigned long long id;
#if CUDART_VERSION >= 13000
    const cudaGraphEdgeData *edge;
    return cudaStreamGetCaptureInfo(s, &status, &id, &graph, node, &edge, n);
#else
    return cudaStreamGetCaptureInfo_v2(s, &status, &id, &graph, node, n);
#endif
}

static cudaError_t set_ends(cudaStream_t s, cudaGraphNode_t *node, size_t n)
{
#if CUDART_VERSION >= 13000
    return cudaStreamUpdateCaptureDependencies(s, node, NULL, n, cudaStreamSetCaptureDependencies);
#else
    return cudaStreamUpdateCaptureDependencies(s, node, n, cudaStreamSetCaptureDependencies);
#endif
}

/* Returns the list with room for n items; NULL after a failure, with the list unchanged. */
static void *grown(LsCuda *c, void *list, uint32_t n, uint32_t *room, size_t size)
{
    if (list != NULL && n <= *room)
        return list;
    void *more = realloc(list, 2 * ((size_t)n + 1) * size);
    if (more == NULL)
        ls_device_fail(&c->d, LS_EXIT_FAIL, "out of memory");
    else
        *room = 2 * (n + 1);
    return more;
}

/* Records the last nodes of the step issued last: its own, or those it waits for, if it issued
 * nothing. */
static bool note_step(LsCuda *c)
{
    LsCudaEnds *e = &c->ends;
    const cudaGraphNode_t *node;
    size_t n;
    cudaError_t err = get_ends(c->stream, &node, &n);
    if (err != cudaSuccess)
        return ls_cuda_check(c, err, "read the dependencies of a step");
    uint32_t at = e->of[e->nstep];
    cudaGraphNode_t *list = grown(c, e->node, at + (uint32_t)n, &e->room, sizeof *list);
    if (list == NULL)
        return false;
    e->node = list;
    for (size_t k = 0; k < n; k++)
        e->node[at + k] = node[k];
    e->of[++e->nstep] = at + (uint32_t)n;
    return true;
}

static bool begin_step(LsCuda *c, uint32_t k)
{
    LsCudaEnds *e = &c->ends;
    uint32_t *of = grown(c, e->of, k + 2, &e->room_of, sizeof *of);
    e->of = of != NULL ? of : e->of;
    bool *awaited = grown(c, e->awaited, k + 1, &e->room_awaited, sizeof *awaited);
    e->awaited = awaited != NULL ? awaited : e->awaited;
    if (of == NULL || awaited == NULL)
        return false;
    if (k == 0) {
        e->nstep = 0;
        e->of[0] = 0;
    }
    e->awaited[k] = false;
    return k == 0 || note_step(c);
}

/* Adds the last nodes of a step to a set. */
static size_t add_ends(const LsCudaEnds *e, uint32_t step, cudaGraphNode_t *set, size_t n)
{
    for (uint32_t k = e->of[step]; k < e->of[step + 1]; k++) {
        size_t same = 0;
        while (same < n && set[same] != e->node[k])
            same++;
        set[same] = e->node[k];
        n += same == n;
    }
    return n;
}

/* Makes the next work wait for the steps of a list, or for all steps that no other step waits
 * for. */
static bool wait_for(LsCuda *c, const uint32_t *step, uint32_t nstep)
{
    LsCudaEnds *e = &c->ends;
    cudaGraphNode_t *set = malloc((e->of[e->nstep] + 1u) * sizeof *set);
    size_t n = 0;
    if (set == NULL)
        return ls_device_fail(&c->d, LS_EXIT_FAIL, "out of memory");
    for (uint32_t k = 0; step != NULL && k < nstep; k++) {
        e->awaited[step[k]] = true;
        n = add_ends(e, step[k], set, n);
    }
    for (uint32_t k = 0; step == NULL && k < e->nstep; k++)
        if (!e->awaited[k])
            n = add_ends(e, k, set, n);
    cudaError_t err = set_ends(c->stream, set, n);
    free(set);
    return ls_cuda_check(c, err, "let a step wait for others");
}

bool ls_cuda_follow(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n)
{
    LsCuda *c = ls_cuda_of(d);
    c->following = begin_step(c, k) && wait_for(c, step, n);
    return c->following;
}

bool ls_cuda_join(LsCuda *c)
{
    bool following = c->following;
    c->following = false;
    return !following || (note_step(c) && wait_for(c, NULL, 0));
}
