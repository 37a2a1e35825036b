/* tests/support/fake_cudart.c -- see fake_cudart.h. The functions that runtime/cuda uses, with the
 * meaning the CUDA documentation gives them; anything beyond that ends the process.
 *
 * In eager mode every operation runs when it is issued. In lazy mode it waits in the queue of its
 * stream until the host waits for something that needs it. So memory that the host overwrites too
 * early, or a missing wait between streams, gives wrong results every time. Device memory can be
 * touched only while an operation runs, and is full of NaN at first.
 *
 * It is stricter than a GPU: during a recording nothing is allocated and nothing waits; recorded
 * kernels have run before, so that they are loaded; kernels get addresses in device memory, at
 * multiples of 16 bytes; only events made for timing give times. */
#include "tests/support/fake_cudart.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    QUEUE = 1024, GRAPH = 4096, EDGES = 16384, BLOCKS = 64, PAGE = 4096, KERNELS = 4096,
    STREAMS = 64
};
enum { DRIVER = 13000 };

typedef enum { COPY, SET, KERNEL, WORK, RECORD, WAIT } Kind;
typedef struct Op {
    Kind kind;
    void *to; const void *from; size_t n;
    const FakeKernel *kernel; const LsRun *run; void *arg[FAKE_ARGS]; int64_t blocks;
    void (*work)(const void *);         /* on `from` */
    cudaEvent_t event; int64_t version;
} Op;

struct CUevent_st {
    int number;
    cudaStream_t stream;
    int64_t recorded, done;
    struct timespec at;
    unsigned flags;
};
struct CUstream_st { int number; Op op[QUEUE]; int64_t given, done; struct CUgraph_st *into; };
/* The recording: node k, of handle k + 1, waits for edge[first[k] .. first[k + 1]). */
struct CUgraph_st {
    Op op[GRAPH]; int n;
    int edge[EDGES], first[GRAPH + 1];
    cudaGraphNode_t end[EDGES]; int nend;       /* dependencies of the next node */
};

typedef struct Block { char *at; size_t bytes; bool device; } Block;

FakeCudart fake_cudart = {.devices = 1, .driver = DRIVER, .room = 1 << 30};
static Block block[BLOCKS];
static cudaError_t sticky, last;
static int recordings;          /* under way */
static const FakeKernel *loaded[KERNELS];       /* kernels that ran outside recordings */
static int nloaded;
static cudaStream_t streams[STREAMS];
static int nstreams, streams_made, events_made;

static void never(const char *what)
{
    fprintf(stderr, "fake CUDA runtime: %s\n", what);
    abort();
}

static void not_while_recorded(const char *what)
{
    if (recordings > 0)
        never(what);
}

static cudaError_t told(cudaError_t err)
{
    if (sticky != cudaSuccess)
        err = sticky;
    if (err != cudaSuccess)
        last = err;
    return err;
}

/* ---- memory ---- */

static Block *block_of(const void *at)
{
    for (int k = 0; k < BLOCKS; k++)
        if (block[k].at != NULL && (const char *)at >= block[k].at
            && (const char *)at < block[k].at + block[k].bytes)
            return &block[k];
    return NULL;
}

static cudaError_t take(void **at, size_t bytes, bool device)
{
    Block *b = block;
    not_while_recorded("memory is taken while a recording is made");
    while (b < block + BLOCKS && b->at != NULL)
        b++;
    if (b == block + BLOCKS)
        never("too many allocations");
    if (device && fake_cudart.used + bytes > fake_cudart.room)
        return told(cudaErrorMemoryAllocation);
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    *b = (Block){mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                 bytes, device};
    memset(b->at, 0xff, bytes);
    if (device)
        mprotect(b->at, whole, PROT_NONE);
    *at = b->at;
    fake_cudart.used += device ? bytes : 0;
    return told(cudaSuccess);
}

static cudaError_t give(void *at)
{
    Block *b = block_of(at);
    not_while_recorded("memory is given back while a recording is made");
    if (at == NULL)
        return told(cudaSuccess);
    if (b == NULL || b->at != at)
        never("memory is freed that was not taken");
    munmap(b->at, (b->bytes + PAGE - 1) / PAGE * PAGE);
    fake_cudart.used -= b->device ? b->bytes : 0;
    *b = (Block){0};
    return told(cudaSuccess);
}

static void open_memory(bool open)
{
    for (int k = 0; k < BLOCKS; k++)
        if (block[k].at != NULL && block[k].device)
            mprotect(block[k].at, block[k].bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *of, const void *at)
{
    const Block *b = block_of(at);
    *of = (struct cudaPointerAttributes){
        .type = b != NULL && b->device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered};
    return told(cudaSuccess);
}

cudaError_t cudaMalloc(void **p, size_t n) { return take(p, n, true); }
cudaError_t cudaFree(void *p) { return give(p); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags)
{
    (void)flags;
    return take(p, n, false);
}
cudaError_t cudaFreeHost(void *p) { return give(p); }

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *all = fake_cudart.room;
    *left = fake_cudart.room - fake_cudart.used;
    return told(cudaSuccess);
}

cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags)
{
    (void)flags;
    Block *b = block;
    not_while_recorded("memory is pinned while a recording is made");
    if (block_of(p) != NULL)
        return told(cudaErrorHostMemoryAlreadyRegistered);
    while (b->at != NULL)
        b++;
    *b = (Block){p, n, false};
    return told(cudaSuccess);
}

cudaError_t cudaHostUnregister(void *p)
{
    Block *b = block_of(p);
    if (b == NULL || b->at != p)
        return told(cudaErrorHostMemoryNotRegistered);
    *b = (Block){0};
    return told(cudaSuccess);
}

/* ---- work ---- */

static void run_until(cudaStream_t s, int64_t done);

static void carry_out(const Op *o)
{
    if (sticky != cudaSuccess)
        return;
    open_memory(true);
    switch (o->kind) {
    case COPY: memcpy(o->to, o->from, o->n); break;
    case SET:  memset(o->to, 0, o->n); break;
    case KERNEL:
        if (++fake_cudart.ran == fake_cudart.fail_at)
            sticky = fake_cudart.fail_with;
        else
            o->kernel->body(o->kernel, o->run, o->arg, o->blocks);
        break;
    case WORK: o->work(o->from); break;
    case RECORD:
        o->event->done = o->version;
        clock_gettime(CLOCK_MONOTONIC, &o->event->at);
        break;
    case WAIT: break;
    }
    open_memory(false);
}

/* Runs until the event's record of that version, or of a later version, is done. */
static void run_until_event(cudaEvent_t e, int64_t version)
{
    while (e->done < version && e->stream->done < e->stream->given)
        run_until(e->stream, e->stream->done + 1);
}

static void run_until(cudaStream_t s, int64_t done)
{
    while (s->done < done) {
        Op o = s->op[s->done % QUEUE];
        if (o.kind == WAIT)
            run_until_event(o.event, o.version);
        s->done++;
        carry_out(&o);
    }
}

static cudaGraphNode_t handle(int node) { return (cudaGraphNode_t)(uintptr_t)(node + 1); }

static void add_node(cudaGraph_t g, const Op *o)
{
    int at = g->first[g->n];
    if (at + g->nend > EDGES)
        never("the recording has too many edges");
    for (int k = 0; k < g->nend; k++)
        g->edge[at++] = (int)(uintptr_t)g->end[k] - 1;
    g->op[g->n++] = *o;
    g->first[g->n] = at;
    g->end[0] = handle(g->n - 1);
    g->nend = 1;
}

static const char *place_of(const void *at)
{
    const Block *b = block_of(at);
    return b != NULL && b->device ? "device" : "host";
}

static void note(cudaStream_t s, const Op *o)
{
    FILE *log = fake_cudart.log;
    if (log == NULL)
        return;
    fprintf(log, "s%d ", s->number);
    switch (o->kind) {
    case COPY:
        fprintf(log, "copy %zu %s to %s\n", o->n, place_of(o->from), place_of(o->to));
        break;
    case SET:    fprintf(log, "set %zu\n", o->n); break;
    case KERNEL: fprintf(log, "kernel %s\n", o->kernel->name); break;
    case WORK:   fprintf(log, "work\n"); break;
    case RECORD: fprintf(log, "record e%d\n", o->event->number); break;
    case WAIT:   fprintf(log, "wait e%d\n", o->event->number); break;
    }
}

static void note_wait(const char *what, int number)
{
    if (fake_cudart.log != NULL)
        fprintf(fake_cudart.log, "host waits for %s%d\n", what, number);
}

static cudaError_t put(cudaStream_t s, const Op *o)
{
    if (s == NULL)
        never("the default stream is used");
    if (s->into == NULL)
        note(s, o);
    if (s->into != NULL) {
        if (o->kind == WAIT || (o->kind == RECORD && o->version != 0))
            never("an event in a recording that is not external");
        if (s->into->n == GRAPH)
            never("the recording is too long");
        add_node(s->into, o);
        return told(cudaSuccess);
    }
    if (s->given - s->done == QUEUE)
        run_until(s, s->done + QUEUE / 2);
    s->op[s->given++ % QUEUE] = *o;
    if (!fake_cudart.lazy)
        run_until(s, s->given);
    return told(cudaSuccess);
}

/* Memory that is not pinned is copied before the call returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    const void *host = kind == cudaMemcpyHostToDevice ? from : to;
    const void *device = kind == cudaMemcpyHostToDevice ? to : from;
    Block *there = block_of(device), *here = block_of(host);
    if (s != NULL && s->into != NULL)
        never("a copy is recorded, whose place here may be gone when it is made");
    if (kind == cudaMemcpyDeviceToDevice) {
        if (there == NULL || here == NULL || !there->device || !here->device
            || (const char *)from + n > there->at + there->bytes
            || (const char *)to + n > here->at + here->bytes)
            return told(cudaErrorInvalidValue);
        return put(s, &(Op){.kind = COPY, .to = to, .from = from, .n = n});
    }
    if (there == NULL || !there->device
        || (const char *)device + n > there->at + there->bytes || (here != NULL && here->device))
        return told(cudaErrorInvalidValue);
    cudaError_t err = put(s, &(Op){.kind = COPY, .to = to, .from = from, .n = n});
    if (here == NULL && s->into == NULL)
        run_until(s, s->given);
    return told(err);
}

static void copy_rows(const void *data)
{
    const struct cudaMemcpy3DParms *p = data;
    const struct cudaPitchedPtr *to = &p->dstPtr, *from = &p->srcPtr;
    for (size_t z = 0; z < p->extent.depth; z++)
        for (size_t y = 0; y < p->extent.height; y++)
            memcpy((char *)to->ptr + (z * to->ysize + y) * to->pitch,
                   (const char *)from->ptr + (z * from->ysize + y) * from->pitch, p->extent.width);
}

/* The bytes from the first row to the end of the last one lie in one block. */
static bool is_inside(const struct cudaPitchedPtr *x, struct cudaExtent e)
{
    const Block *b = block_of(x->ptr);
    const size_t last = ((e.depth - 1) * x->ysize + e.height - 1) * x->pitch + e.width;
    return b != NULL && b->device && e.width <= x->pitch && (e.depth == 1 || e.height <= x->ysize)
           && (char *)x->ptr + last <= b->at + b->bytes;
}

/* Between places on the device alone. */
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s)
{
    const struct cudaPos a = p->srcPos, b = p->dstPos;
    if (p->srcArray != NULL || p->dstArray != NULL || (a.x | a.y | a.z | b.x | b.y | b.z) != 0
        || p->kind != cudaMemcpyDeviceToDevice || s->into != NULL)
        never("a copy of another kind");
    if (!is_inside(&p->srcPtr, p->extent) || !is_inside(&p->dstPtr, p->extent))
        return told(cudaErrorInvalidValue);
    if (fake_cudart.log != NULL)
        fprintf(fake_cudart.log, "rows of %zu device to device: ", p->extent.width);
    fake_cudart_work(s, copy_rows, p, sizeof *p);
    return told(cudaSuccess);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t s)
{
    if (value != 0)
        never("memory is set to something else than 0");
    return put(s, &(Op){.kind = SET, .to = to, .n = n});
}

bool fake_cudart_records(void *stream)
{
    const struct CUstream_st *s = stream;
    return s->into != NULL;
}

static bool is_loaded(const FakeKernel *k)
{
    for (int i = 0; i < nloaded; i++)
        if (loaded[i] == k)
            return true;
    return false;
}

/* Arguments are addresses on the device, NULL, or numbers of shared texts (LS_NUMBER). Numbers are
 * below the first address. */
#define MOST_NUMBER ((uintptr_t)1 << 32)

static void check_arguments(const FakeKernel *k, const void *run, void *const arg[])
{
    for (int i = -1; i < k->narg; i++) {
        const void *at = i < 0 ? run : arg[i];
        const Block *b = block_of(at);
        if (i >= 0 && (uintptr_t)at < MOST_NUMBER)
            continue;
        if (b == NULL || !b->device || (uintptr_t)at % 16 != 0) {
            fprintf(stderr, "kernel %s: argument %d, %p, is %s\n", k->name, i, at,
                    b == NULL || !b->device ? "not on the device" : "not aligned");
            never("a kernel with a wrong argument");
        }
    }
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 threads, void **parameter,
                             size_t shared, cudaStream_t s)
{
    const FakeKernel *k = f;
    Op o = {.kind = KERNEL, .kernel = k, .blocks = grid.x};
    if (shared != 0 || grid.x == 0 || grid.x > INT32_MAX || grid.y != 1 || grid.z != 1
        || threads.z != 1 || threads.x * threads.y == 0 || threads.x * threads.y > 1024)
        return told(cudaErrorInvalidConfiguration);
    if (k->narg > FAKE_ARGS)
        never("a kernel with too many arguments");
    memcpy(&o.run, parameter[0], sizeof o.run);
    memcpy(o.arg, parameter[1], (size_t)k->narg * sizeof *o.arg);
    check_arguments(k, o.run, o.arg);
    if (!is_loaded(k)) {
        if (s != NULL && s->into != NULL)
            never("a kernel is recorded that never ran: it would be loaded then");
        if (nloaded < KERNELS)
            loaded[nloaded++] = k;
    }
    fake_cudart.launched += s->into == NULL;
    return put(s, &o);
}

/* The copy stays until the process ends: a recording may use it. */
void fake_cudart_work(void *stream, void (*work)(const void *), const void *data, size_t bytes)
{
    static void *kept;
    void **copy = malloc(sizeof *copy + bytes);
    if (copy == NULL)
        never("no memory");
    copy[0] = kept;
    kept = copy;
    memcpy(copy + 1, data, bytes);
    put(stream, &(Op){.kind = WORK, .work = work, .from = copy + 1});
}

/* ---- streams, events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    if (flags != cudaStreamNonBlocking)
        never("a stream that waits for the default stream");
    *s = calloc(1, sizeof **s);
    if (*s == NULL)
        return told(cudaErrorMemoryAllocation);
    if (nstreams == STREAMS)
        never("too many streams");
    (*s)->number = streams_made++;
    streams[nstreams++] = *s;
    return told(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    if (s->into != NULL)
        never("a stream is given back while it is recorded");
    run_until(s, s->given);
    for (int k = 0; k < nstreams; k++)
        if (streams[k] == s)
            streams[k--] = streams[--nstreams];
    free(s);
    return told(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    not_while_recorded("waiting for the device while a recording is made");
    note_wait("the device ", 0);
    for (int k = 0; k < nstreams; k++)
        run_until(streams[k], streams[k]->given);
    return told(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    not_while_recorded("waiting for a stream while a recording is made");
    note_wait("s", s->number);
    run_until(s, s->given);
    return told(cudaSuccess);
}

/* In lazy mode work is late: done by the time that the second question comes. */
cudaError_t cudaStreamQuery(cudaStream_t s)
{
    const bool done = s->done == s->given;
    run_until(s, s->given);
    return done ? told(cudaSuccess) : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    *e = calloc(1, sizeof **e);
    if (*e == NULL)
        return told(cudaErrorMemoryAllocation);
    (*e)->flags = flags;
    (*e)->number = events_made++;
    return told(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }

/* What waits for the event, or records it, is done first. */
cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    for (int k = 0; k < nstreams; k++)
        run_until(streams[k], streams[k]->given);
    free(e);
    return told(cudaSuccess);
}

/* The default stream is a stream like others here; it waits for none. */
static cudaStream_t named(cudaStream_t s)
{
    static cudaStream_t legacy;
    if (s == cudaStreamLegacy && legacy == NULL)
        cudaStreamCreateWithFlags(&legacy, cudaStreamNonBlocking);
    return s == cudaStreamLegacy ? legacy : s;
}

static bool is_stream(cudaStream_t s)
{
    for (int k = 0; k < nstreams; k++)
        if (streams[k] == s)
            return true;
    return false;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    s = named(s);
    if (!is_stream(s))
        return told(cudaErrorInvalidResourceHandle);
    e->stream = s;
    e->recorded++;
    return put(s, &(Op){.kind = RECORD, .event = e, .version = e->recorded});
}

/* External: the event is recorded by every launch of the graph. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned flags)
{
    if ((flags == cudaEventRecordExternal) != (s->into != NULL))
        never("external events are for recordings");
    return s->into != NULL ? put(s, &(Op){.kind = RECORD, .event = e}) : cudaEventRecord(e, s);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    (void)flags;
    s = named(s);
    return put(s, &(Op){.kind = WAIT, .event = e, .version = e->recorded});
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    not_while_recorded("waiting for an event while a recording is made");
    if (e->done < e->recorded)
        note_wait("e", e->number);
    run_until_event(e, e->recorded);
    return told(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    if (((a->flags | b->flags) & cudaEventDisableTiming) || a->recorded == 0 || b->recorded == 0)
        return told(cudaErrorInvalidResourceHandle);
    *ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3
                  + (double)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6);
    return told(a->done == a->recorded && b->done == b->recorded ? cudaSuccess : cudaErrorNotReady);
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    if (mode != cudaStreamCaptureModeThreadLocal || s->into != NULL)
        never("a recording in another mode, or in another recording");
    s->into = calloc(1, sizeof *s->into);
    recordings += s->into != NULL;
    return told(s->into != NULL ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    if (s->into == NULL)
        never("the end of a recording that was not begun");
    *g = s->into;
    s->into = NULL;
    recordings--;
    if (fake_cudart.unrecordable) {
        free(*g);
        *g = NULL;
        return told(cudaErrorStreamCaptureInvalidated);
    }
    return told(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status)
{
    s = named(s);
    if (!is_stream(s))
        return told(cudaErrorInvalidResourceHandle);
    *status = s->into != NULL ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return told(cudaSuccess);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **node, const cudaGraphEdgeData **edge,
                                     size_t *n)
{
    if (s->into == NULL)
        never("a recording is asked about that is not made");
    *status = cudaStreamCaptureStatusActive;
    *id = 1;
    *graph = s->into;
    *node = s->into->end;
    *edge = NULL;
    *n = (size_t)s->into->nend;
    return told(cudaSuccess);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *node,
                                                const cudaGraphEdgeData *edge, size_t n,
                                                unsigned flags)
{
    if (s->into == NULL || edge != NULL || flags != cudaStreamSetCaptureDependencies || n > EDGES)
        never("what a recording waits for is changed in another way");
    if (fake_cudart.in_order)
        return told(cudaErrorNotSupported);
    for (size_t k = 0; k < n; k++) {
        if ((uintptr_t)node[k] == 0 || (uintptr_t)node[k] > (uintptr_t)s->into->n)
            return told(cudaErrorInvalidValue);
        for (size_t j = 0; j < k; j++)
            if (node[j] == node[k])
                return told(cudaErrorInvalidValue);
    }
    memcpy(s->into->end, node, n * sizeof *node);
    s->into->nend = (int)n;
    return told(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long flags)
{
    if (flags != 0 || g == NULL)
        return told(cudaErrorInvalidValue);
    struct CUgraph_st *copy = malloc(sizeof *copy);
    if (copy == NULL)
        never("no memory");
    *copy = *g;
    *x = (cudaGraphExec_t)(void *)copy;
    return told(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t s)
{
    (void)x, (void)s;
    return told(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) { free(g); return told(cudaSuccess); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) { free(x); return told(cudaSuccess); }

/* A node without open dependencies: the first, or with fake_cudart.order any. */
static int next_node(const struct CUgraph_st *g, const bool *done)
{
    static unsigned long long luck;
    int ready = 0, next = -1;
    for (int k = 0; k < g->n && (next < 0 || fake_cudart.order != 0); k++) {
        bool waits = done[k];
        for (int e = g->first[k]; e < g->first[k + 1]; e++)
            waits |= !done[g->edge[e]];
        if (waits)
            continue;
        luck = luck * 6364136223846793005u + fake_cudart.order;
        if ((luck >> 33) % (unsigned)++ready == 0)
            next = k;
    }
    fake_cudart.apart += ready > 1;
    return next;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s)
{
    const struct CUgraph_st *g = (const void *)x;
    bool *done = calloc((size_t)g->n + 1, 1);
    fake_cudart.replayed++;
    for (int k = 0; k < g->n; k++) {
        int node = next_node(g, done);
        Op o = g->op[node];
        done[node] = true;
        if (o.kind == RECORD) {
            o.event->stream = s;
            o.version = ++o.event->recorded;
        }
        put(s, &o);
    }
    free(done);
    return told(cudaSuccess);
}

/* ---- device, code, errors ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = fake_cudart.devices;
    return told(fake_cudart.driver < DRIVER ? cudaErrorInsufficientDriver
                : *n == 0 ? cudaErrorNoDevice : cudaSuccess);
}

static int current;

cudaError_t cudaSetDevice(int k)
{
    if (k < 0 || k >= fake_cudart.devices)
        return told(cudaErrorInvalidDevice);
    current = k;
    return told(cudaSuccess);
}

cudaError_t cudaGetDevice(int *k) { *k = current; return told(cudaSuccess); }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int k)
{
    memset(p, 0, sizeof *p);
    p->uuid.bytes[0] = (char)(k + 1);
    snprintf(p->name, sizeof p->name, "Paper GPU%.*s", fake_cudart.kinds ? k : 0, " XXXXXXXX");
    p->major = 9;
    p->multiProcessorCount = 4;
    return told(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *v) { *v = fake_cudart.driver; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *v) { *v = DRIVER; return cudaSuccess; }

cudaError_t cudaLibraryLoadData(cudaLibrary_t *l, const void *code, enum cudaJitOption *o,
                                void **ov, unsigned no, enum cudaLibraryOption *p, void **pv,
                                unsigned np)
{
    (void)o, (void)ov, (void)no, (void)p, (void)pv, (void)np;
    *l = (cudaLibrary_t)(uintptr_t)code;
    return told(strncmp(code, "FAKE", 4) == 0 ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t l) { (void)l; return told(cudaSuccess); }

cudaError_t cudaLibraryGetKernel(cudaKernel_t *k, cudaLibrary_t l, const char *name)
{
    (void)l;
    for (int i = 0; i < fake_cudart.nkernel; i++)
        if (strcmp(fake_cudart.kernel[i].name, name) == 0) {
            *k = (cudaKernel_t)(uintptr_t)&fake_cudart.kernel[i];
            return told(cudaSuccess);
        }
    return told(cudaErrorSymbolNotFound);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t err = told(last);
    last = cudaSuccess;
    return err;
}

cudaError_t cudaPeekAtLastError(void) { return told(last); }
const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorECCUncorrectable ? "uncorrectable ECC error encountered" : "some error";
}
const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorECCUncorrectable ? "cudaErrorECCUncorrectable" : "cudaErrorOther";
}
