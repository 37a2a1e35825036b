/* tests/whole/library_gpu.c -- a program around a library for GPUs with the prefix `net`, on a GPU
 * or a simulated one: updates over arrays of the host, and the same over arrays on the GPU, in the
 * order of a stream of its own.
 *
 *   library_gpu TOTAL STEPS     updates over TOTAL samples in order, each epoch anew */
#include "library_client.h"

#include <cuda_runtime_api.h>

enum { MOST_STEPS = 100 };

typedef struct Results {
    real loss[MOST_STEPS];
    double evaluated;
    void *tensor[NET_TENSORS];
    size_t bytes[NET_TENSORS];
} Results;

static void cuda(cudaError_t err, const char *what)
{
    if (err != cudaSuccess)
        exit((fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err)), 1));
}
#define CUDA(call) cuda(call, #call)

static int64_t batch_of(const Run *r)
{
    const int64_t left = r->total - r->next;
    return left < NET_BATCH ? left : NET_BATCH;
}

static void read_state(Run *r, Results *to)
{
    for (int k = 0; k < NET_TENSORS; k++) {
        net_tensor t;
        net_error e;
        net_state(r->it, k, &t);
        to->bytes[k] = (size_t)(t.rank > 0 ? t.dim[0] * elements(&t) : 1) * width(t.type);
        to->tensor[k] = need(malloc(to->bytes[k] + 1));
        must(net_read(r->it, k, to->tensor[k], &e), &e);
    }
}

static void on_the_host(Run *r, int steps, Results *to)
{
    const void *in[MOST_INPUTS];
    net_error e;
    for (int k = 0; k < steps; k++)
        to->loss[k] = (real)step(r, 0.05);
    inputs(r, 0, in);
    must(net_evaluate(r->it, in, r->total, &to->evaluated, &e), &e);
    read_state(r, to);
}

/* All samples of each input on the GPU, and one batch, which the stream writes for each step. */
typedef struct There { char *all[MOST_INPUTS], *batch[MOST_INPUTS]; real *seen; } There;

static There take(const Run *r)
{
    There t = {.seen = NULL};
    for (int k = 0; k < NET_INPUTS; k++) {
        const size_t each = (size_t)elements(&r->input[k]) * width(r->input[k].type);
        CUDA(cudaMalloc((void **)&t.all[k], (size_t)r->total * each));
        CUDA(cudaMalloc((void **)&t.batch[k], NET_BATCH * each));
    }
    CUDA(cudaHostAlloc((void **)&t.seen, MOST_STEPS * sizeof *t.seen, 0));
    return t;
}

static void give_back(There *t)
{
    for (int k = 0; k < NET_INPUTS; k++) {
        CUDA(cudaFree(t->all[k]));
        CUDA(cudaFree(t->batch[k]));
    }
    CUDA(cudaFreeHost(t->seen));
}

/* One update whose loss the stream reads. Only reals lie there, or all inputs. */
static void issue(Run *r, There *t, cudaStream_t own, bool reals, const void *loss, int k)
{
    const int64_t n = batch_of(r);
    const void *in[MOST_INPUTS];
    net_error e;
    inputs(r, r->next, in);
    for (int i = 0; i < NET_INPUTS; i++) {
        const size_t each = (size_t)elements(&r->input[i]) * width(r->input[i].type);
        if (reals && r->input[i].type != NET_REAL)
            continue;
        CUDA(cudaMemcpyAsync(t->batch[i], t->all[i] + (size_t)r->next * each, (size_t)n * each,
                             cudaMemcpyDeviceToDevice, own));
        in[i] = t->batch[i];
    }
    must(net_step(r->it, in, n, 0.05, NULL, &e), &e);
    if (loss != NULL)
        CUDA(cudaMemcpyAsync(&t->seen[k], loss, sizeof *t->seen, cudaMemcpyDeviceToHost, own));
    for (int i = 0; i < NET_INPUTS; i++)
        CUDA(cudaMemsetAsync(t->batch[i], 0, width(r->input[i].type), own));
    r->next = (r->next + n) % r->total;
}

static void on_the_gpu(Run *r, int steps, bool reals, const Results *want, Results *to)
{
    net_error e;
    cudaStream_t own;
    There t = take(r);
    const void *in[MOST_INPUTS], *loss = NULL;
    double last;
    CUDA(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    for (int k = 0; k < NET_INPUTS; k++) {
        in[k] = t.all[k];
        CUDA(cudaMemcpyAsync(t.all[k], r->data[k],
                             (size_t)(r->total * elements(&r->input[k]))
                                 * width(r->input[k].type),
                             cudaMemcpyHostToDevice, own));
    }
    must(net_set_stream(r->it, own, &e), &e);
    const bool told = net_loss_on_gpu(r->it, &loss, &e) == NET_OK;
    if (!told && strstr(e.text, "combines theirs") == NULL)
        exit((fprintf(stderr, "%s\n", e.text), 1));
    for (int k = 0; k < steps; k++)
        issue(r, &t, own, reals, loss, k);
    CUDA(cudaStreamSynchronize(own));
    must(net_wait(r->it, &last, &e), &e);
    for (int k = 0; k < steps; k++)
        to->loss[k] = told ? t.seen[k] : want->loss[k];
    to->loss[steps - 1] = told ? to->loss[steps - 1] : (real)last;
    must(net_evaluate(r->it, in, r->total, &to->evaluated, &e), &e);
    read_state(r, to);
    give_back(&t);
    CUDA(cudaStreamDestroy(own));
}

/* A loss read by the host was divided by what it is multiplied by there. */
static bool is_near(real a, real b)
{
    const real d = a - b, most = (a < 0 ? -a : a) * (real)1e-6;
    return d <= most && d >= -most;
}

static void compare(const Results *a, const Results *b, int steps, const char *what)
{
    for (int k = 0; k < steps; k++)
        if (!is_near(a->loss[k], b->loss[k]))
            exit((fprintf(stderr, "%s: loss %d is %.9g, not %.9g\n", what, k,
                          (double)b->loss[k], (double)a->loss[k]), 1));
    if (a->evaluated != b->evaluated)
        exit((fprintf(stderr, "%s: evaluation gives another loss\n", what), 1));
    for (int k = 0; k < NET_TENSORS; k++)
        if (memcmp(a->tensor[k], b->tensor[k], a->bytes[k]) != 0)
            exit((fprintf(stderr, "%s: tensor %d has other bits\n", what, k), 1));
}

static void forget(Results *x)
{
    for (int k = 0; k < NET_TENSORS; k++)
        free(x->tensor[k]);
}

int main(int argc, char **argv)
{
    static Results want, got;
    const int64_t total = argc == 3 ? atoll(argv[1]) : 0;
    const int steps = argc == 3 ? atoi(argv[2]) : 0;
    if (total < NET_BATCH || steps < 1 || steps > MOST_STEPS)
        return fprintf(stderr, "usage: %s TOTAL STEPS\n", argv[0]), 2;
    Run r = start(total, 3, 1);
    on_the_host(&r, steps, &want);
    end(&r);
    for (int reals = 0; reals < 2; reals++) {
        r = start(total, 3, 1);
        on_the_gpu(&r, steps, reals, &want, &got);
        end(&r);
        compare(&want, &got, steps, reals ? "reals on the GPU" : "all on the GPU");
        forget(&got);
    }
    forget(&want);
    printf("%d steps over %" PRId64 " samples: the same bits\n", steps, total);
    return 0;
}
