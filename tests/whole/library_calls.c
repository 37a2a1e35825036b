/* tests/whole/library_calls.c -- what any library with the prefix `net` does beside updates.
 *
 *   calls show CHECKPOINT TOTAL     outputs of the evaluation form over TOTAL samples, and
 *                                   gradients of the next update: bytes in out.NAME, grad.NAME
 *   calls check TOTAL               each function against the others */
#define _GNU_SOURCE
#include "library_client.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, FEW = NET_PRIVATE ? 24 : NET_BATCH };
#ifdef __SANITIZE_THREAD__
enum { CHILD_THREADS = 1 };     /* ThreadSanitizer knows no others after a fork */
#else
enum { CHILD_THREADS = 2 };
#endif
static const double rate = 0.01;

static void holds(int is_so, const char *what)
{
    if (!is_so)
        exit((fprintf(stderr, "not so: %s\n", what), 1));
}

static void refused(int code, int number, const net_error *e, const char *why)
{
    if (code != number || e->code != number || strstr(e->text, why) == NULL)
        exit((fprintf(stderr, "not refused: %s: %d, %s\n", why, code, e->text), 1));
}

static size_t bytes_of(const net_tensor *t)
{
    return (size_t)(elements(t) * (t->rank > 0 ? t->dim[0] : 1)) * width(t->type);
}

/* ---- outputs ---- */

typedef struct Output { net_tensor t; char *data; size_t row; } Output;

static Output output(const Run *r, int k, int64_t samples)
{
    Output o;
    holds(net_output(k, &o.t) == 0 && o.t.role == NET_OUTPUT && o.t.data == NULL, "an output");
    o.row = bytes_of(&o.t) / (size_t)r->input[0].dim[0];
    o.data = need(calloc((size_t)samples + 1, o.row));
    return o;
}

/* Without targets. */
static void predict(Run *r, int64_t from, int64_t samples, int k, void *to)
{
    const void *in[MOST_INPUTS];
    void *out[NET_OUTPUTS] = {NULL};
    net_error e;
    inputs(r, from, in);
    for (int i = 0; i < NET_INPUTS; i++)
        in[i] = r->input[i].role == NET_TARGET ? NULL : in[i];
    out[k] = to;
    must(net_predict(r->it, in, samples, out, &e), &e);
}

/* Samples one by one have the rows of all at once; nothing is written behind them. */
static void check_outputs(Run *r)
{
    for (int k = 0; k < NET_OUTPUTS; k++) {
        Output all = output(r, k, r->total), one = output(r, k, 1);
        memset(all.data + (size_t)r->total * all.row, 0x5a, all.row);
        predict(r, 0, r->total, k, all.data);
        for (size_t i = 0; i < all.row; i++)
            holds(all.data[(size_t)r->total * all.row + i] == 0x5a, "the rows of samples alone");
        for (int64_t s = 0; s < r->total; s++) {
            predict(r, s, 1, k, one.data);
            holds(memcmp(one.data, all.data + (size_t)s * all.row, one.row) == 0,
                  "a sample alone has its row");
        }
        free(all.data);
        free(one.data);
    }
}

/* ---- gradients ---- */

#if !NET_PRIVATE
static void write_bytes(const char *kind, const net_tensor *t, const void *at, size_t bytes)
{
    char name[400];
    snprintf(name, sizeof name, "%s.%s", kind, t->name);
    FILE *f = need(fopen(name, "wb"));
    fwrite(at, 1, bytes, f);
    fclose(f);
}

/* Of the next update, which has the same loss; the state stays as it is. */
static void show_gradients(Run *r)
{
    void *gradient[NET_TENSORS] = {NULL};
    const void *in[MOST_INPUTS];
    net_tensor t;
    net_error e;
    double loss;
    char *before = need(malloc(NET_STATE_BYTES));
    memcpy(before, r->state, NET_STATE_BYTES);
    for (int k = 0; k < NET_TENSORS; k++)
        if (net_state(r->it, k, &t) == 0 && t.role == NET_PARAMETER)
            gradient[k] = need(malloc(bytes_of(&t)));
    inputs(r, r->next, in);
    must(net_gradients(r->it, in, NET_BATCH, gradient, &loss, &e), &e);
    holds(memcmp(before, r->state, NET_STATE_BYTES) == 0, "gradients leave the state as it is");
    for (int k = 0; k < NET_TENSORS; k++)
        if (gradient[k] != NULL && net_state(r->it, k, &t) == 0) {
            write_bytes("grad", &t, gradient[k], bytes_of(&t));
            free(gradient[k]);
        }
    holds(step(r, rate) == loss, "gradients have the loss of the update");
    free(before);
}

static void show(const char *checkpoint, int64_t total)
{
    net_error e;
    Run r = start(total, 3, THREADS);
    must(net_load(r.it, checkpoint, &e), &e);
    r.next = net_updates(r.it) * NET_BATCH % total;
    for (int k = 0; k < NET_OUTPUTS; k++) {
        Output o = output(&r, k, total);
        predict(&r, 0, total, k, o.data);
        write_bytes("out", &o.t, o.data, (size_t)total * o.row);
        free(o.data);
    }
    show_gradients(&r);
    end(&r);
}
#endif

/* ---- the state ---- */

/* What is read of one instance and written into another makes that one equal. */
static void check_tensors(Run *r)
{
    net_error e;
    net_tensor t;
    Run other = start(r->total, 3, 1);
    holds(memcmp(r->state, other.state, NET_STATE_BYTES) != 0, "an update changes the state");
    for (int k = 0; k < NET_TENSORS; k++) {
        holds(net_state(r->it, k, &t) == 0, "a tensor");
        char *values = need(malloc(bytes_of(&t) * 2 + 8));
        must(net_read(r->it, k, values, &e), &e);
        must(net_write(other.it, k, values, &e), &e);
        net_state(other.it, k, &t);
        holds(t.channels_last || t.type != NET_REAL || memcmp(t.data, values, bytes_of(&t)) == 0,
              "values lie where the table says");
        free(values);
    }
    holds(memcmp(r->state, other.state, NET_STATE_BYTES) == 0, "tensors that are written");
    refused(net_read(r->it, NET_TENSORS, &t, &e), NET_E_CALL, &e, "no tensor");
    end(&other);
}

/* Checkpoints in memory are the files; an instance that reads one goes on. */
static void check_buffers(Run *r)
{
    net_error e;
    const int64_t bytes = net_save_bytes(r->it);
    char *saved = need(malloc((size_t)bytes)), *file = need(malloc((size_t)bytes + 1));
    refused(net_save_to(r->it, saved, (size_t)bytes - 1, &e), NET_E_CALL, &e, "room");
    must(net_save_to(r->it, saved, (size_t)bytes, &e), &e);
    must(net_save(r->it, "buffer.safetensors", &e), &e);
    FILE *f = need(fopen("buffer.safetensors", "rb"));
    holds(fread(file, 1, (size_t)bytes + 1, f) == (size_t)bytes
          && memcmp(saved, file, (size_t)bytes) == 0, "a buffer has the bytes of the file");
    fclose(f);
    Run other = start(r->total, 5, 2);
    refused(net_load_from(other.it, saved, (size_t)bytes - 4, &e), NET_E_DATA, &e, "checkpoint");
    must(net_load_from(other.it, saved, (size_t)bytes, &e), &e);
    other.next = r->next;
    for (int k = 0; k < 3; k++)
        holds(step(r, rate) == step(&other, rate), "a run goes on from a buffer");
    holds(memcmp(r->state, other.state, NET_STATE_BYTES) == 0, "a run that went on");
    end(&other);
    free(saved);
    free(file);
}

static void check_begin(Run *r)
{
    net_error e;
    Run other = start(r->total, 11, 1);
    must(net_begin(r->it, 11, &e), &e);
#if NET_PRIVATE
    must(net_seed_noise(r->it, 7, &e), &e);
#endif
    r->next = 0;
    holds(net_updates(r->it) == 0, "no updates");
    for (int k = 0; k < 3; k++)
        holds(step(r, rate) == step(&other, rate), "the file's weights again");
    holds(memcmp(r->state, other.state, NET_STATE_BYTES) == 0, "a run that began anew");
    end(&other);
}

/* ---- threads and processes ---- */

typedef struct Task { void (*run)(void *of, int k); void *of; int k; } Task;

static void *run_task(void *arg)
{
    Task *t = arg;
    t->run(t->of, t->k);
    return NULL;
}

/* The last one first, every second one in a thread of its own. */
static void in_any_order(void *context, int tasks, void (*run)(void *of, int k), void *of)
{
    pthread_t thread[64];
    Task task[64];
    ++*(int *)context;
    for (int k = tasks - 1; k >= 0; k--) {
        task[k] = (Task){run, of, k};
        if (k % 2 == 0)
            run_task(&task[k]);
        else if (pthread_create(&thread[k], NULL, run_task, &task[k]) != 0)
            exit(1);
    }
    for (int k = 1; k < tasks; k += 2)
        pthread_join(thread[k], NULL);
}

static void check_threads(void)
{
    net_error e;
    int calls = 0;
    Run r = start(FEW, 7, 1), other = start(r.total, 7, 1);
    net_close(other.it);
    other.it = net_open_with(other.state, NET_STATE_BYTES, other.arena, NET_ARENA_BYTES, THREADS,
                             in_any_order, &calls, 7, &e);
    must(other.it == NULL ? e.code : 0, &e);
#if NET_PRIVATE
    must(net_seed_noise(other.it, 7, &e), &e);
#endif
    holds(step(&r, rate) == step(&other, rate), "the caller's threads");
    printf("%d calls of the caller's threads\n", calls);    /* a tiny net has no tasks to share */
    holds(memcmp(r.state, other.state, NET_STATE_BYTES) == 0, "the state by the caller's threads");
    end(&r);
    end(&other);
}

/* A child of a process whose instance has so many threads makes an update. */
static void check_fork(int threads)
{
    Run r = start(FEW, 7, threads);
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        const void *in[MOST_INPUTS];
        net_error e;
        double loss;
        inputs(&r, 0, in);
        const int code = net_step(r.it, in, r.total, rate, &loss, &e);
        if (threads > 1)
            refused(code, NET_E_CALL, &e, "forked");
        else
            must(code, &e);
        end(&r);
        r = start(r.total, 7, CHILD_THREADS);   /* one of its own */
        step(&r, rate);
        end(&r);
        _exit(0);
    }
    holds(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child's update");
    step(&r, rate);
    end(&r);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
#if !NET_PRIVATE
    if (strcmp(what, "show") == 0 && argc > 3)
        show(argv[2], atoll(argv[3]));
#endif
    if (strcmp(what, "check") == 0 && argc > 2) {
        holds(net_inputs() == NET_INPUTS && net_outputs() == NET_OUTPUTS
              && net_tensors() == NET_TENSORS && net_batch_least() == NET_BATCH_LEAST
              && net_real_bytes() == NET_REAL_BYTES && net_state_bytes() == NET_STATE_BYTES
              && net_arena_bytes() == NET_ARENA_BYTES && net_align() == NET_ALIGN
              && net_batch() == NET_BATCH && net_micro_batch() == NET_MICRO_BATCH
              && net_on_gpu() == NET_ON_GPU && net_private() == NET_PRIVATE
              && net_rate() == NET_RATE && strcmp(net_plan_hash(), NET_PLAN_HASH) == 0,
              "functions have the macros' numbers");
        Run r = start(atoll(argv[2]), 3, THREADS);
        for (int k = 0; k < 2; k++)
            step(&r, rate);
        check_outputs(&r);
        check_tensors(&r);
        check_buffers(&r);
        check_begin(&r);
        end(&r);
        check_threads();
        check_fork(1);
        check_fork(3);
    }
    return 0;
}
