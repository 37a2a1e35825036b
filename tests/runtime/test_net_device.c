/* tests/runtime/test_net_device.c -- an instance of a library on a simulated GPU, whose caller has
 * arrays and a stream there: what is copied where, and what waits for what. The GPU works as late
 * as possible, so that a wait that lacks shows. */
#include "tests/support/tiny_net.h"

#include <stdlib.h>

/* The caller's side: features and labels on the device, and a stream. `pinned` is where they come
 * from, late. */
typedef struct Caller {
    cudaStream_t own;
    float *x, *pinned, *seen;           /* seen: where the caller reads losses to */
    int64_t *label;
} Caller;

static Caller caller(void)
{
    Caller c;
    setenv("LS_FAKE_CUDART", "lazy", 1);
    tiny_data(SAMPLES, features, labels);
    ck_assert_int_eq(cudaMalloc((void **)&c.x, sizeof features), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&c.label, sizeof labels), cudaSuccess);
    ck_assert_int_eq(cudaHostAlloc((void **)&c.pinned, sizeof features, 0), cudaSuccess);
    ck_assert_int_eq(cudaHostAlloc((void **)&c.seen, 64, 0), cudaSuccess);
    cudaStreamCreateWithFlags(&c.own, cudaStreamNonBlocking);
    memcpy(c.pinned, features, sizeof features);
    return c;
}

static void give_back(const Caller *c)
{
    cudaFreeHost(c->pinned);
    cudaFreeHost(c->seen);
    cudaFree(c->x);
    cudaFree(c->label);
    cudaStreamDestroy(c->own);
}

static void issue_writes(const Caller *c)
{
    cudaMemcpyAsync(c->label, labels, sizeof labels, cudaMemcpyHostToDevice, c->own);
    cudaMemcpyAsync(c->x, c->pinned, sizeof features, cudaMemcpyHostToDevice, c->own);
}

/* Nothing checks the labels, which are two. */
static LsProgram unchecked(int accumulate)
{
    LsProgram p = tiny_program(accumulate);
    p.target.classes = 0;
    return p;
}

START_TEST(arrays_may_lie_on_the_device)
{
    float was[STATES][TM * TF], is[STATES][TM * TF];
    for (int checked = 0; checked < 2; checked++) {
        const Caller c = caller();
        const LsProgram p = checked ? tiny_program(1) : unchecked(1);
        LsNet *n = opened(&p, 1);
        step(n, all, TB);
        values(n, was);
        OK(ls_net_begin(n, 3, &e));
        issue_writes(&c);
        step(n, (const void *const[]){c.x, c.label}, TB);
        values(n, is);
        ck_assert_mem_eq(was, is, sizeof is);
        OK(ls_net_begin(n, 3, &e));
        step(n, (const void *const[]){c.x, labels}, TB);
        values(n, is);
        ck_assert_mem_eq(was, is, sizeof is);
        ls_net_close(n);
        give_back(&c);
    }
}
END_TEST

/* All calls that take arrays, over samples that leave the last batch short. */
static void results(LsNet *n, const void *const *input, int accumulate, float state[][TM * TF],
                    float y[SAMPLES][TM], double loss[3])
{
    const int64_t most = accumulate * TB;
    float w[TM * TF];
    OK(ls_net_begin(n, 3, &e));
    for (int64_t samples = most; samples > most - TB; samples--)
        loss[0] = step(n, input, samples);
    OK(ls_net_evaluate(n, input, SAMPLES, &loss[1], &e));
    OK(ls_net_predict(n, input, SAMPLES, (void *[]){y}, &e));
    OK(ls_net_gradients(n, input, most - 1, (void *[STATES]){w}, &loss[2], &e));
    values(n, state);
    memcpy(state[STATES], w, sizeof w);
}

START_TEST(inputs_on_the_device_give_the_same_bits)
{
    float was[STATES + 1][TM * TF], is[STATES + 1][TM * TF], y[SAMPLES][TM], z[SAMPLES][TM];
    double loss[3], again[3];
    for (int accumulate = 1; accumulate < 3; accumulate++) {
        const Caller c = caller();
        const LsProgram p = unchecked(accumulate);
        LsNet *n = opened(&p, 1);
        results(n, all, accumulate, was, y, loss);
        OK(ls_net_set_stream(n, c.own, &e));
        issue_writes(&c);
        results(n, (const void *const[]){c.x, c.label}, accumulate, is, z, again);
        ck_assert_mem_eq(was, is, sizeof is);
        ck_assert_mem_eq(y, z, sizeof y);
        ck_assert_mem_eq(loss, again, sizeof loss);
        ls_net_close(n);
        give_back(&c);
    }
}
END_TEST

/* What a call gives to streams. */
static char *logged(LsNet *n, const void *const *input, int64_t samples)
{
    char *text = NULL;
    size_t size;
    fake_cudart.log = open_memstream(&text, &size);
    OK(ls_net_step(n, input, samples, rate, NULL, &e));
    fclose(fake_cudart.log);
    fake_cudart.log = NULL;
    return text;
}

/* The streams are the caller's, s0, and that of the steps, s1; e4 and e5 lead from one to the
 * other. e0 to e3 say of both slots that the batch is there and that the run is done. Places of x
 * are copied one by one, as they are fewer than channels, and the sample that lacks is the first
 * one again. The host waits for the step before alone, whose loss it reads. */
static const char by_events[] = "s0 record e4\n"
                                "s1 wait e4\n"
                                "rows of 4 device to device: s1 work\n"
                                "rows of 4 device to device: s1 work\n"
                                "s1 copy 24 device to device\n"
                                "s1 copy 24 device to device\n"
                                "s1 copy 8 device to device\n"
                                "s1 wait e2\n"
                                "s1 copy NUMBERS host to device\n"
                                "s1 kernel logits_part\n"
                                "s1 kernel loss_part\n"
                                "s1 kernel grad_part\n"
                                "s1 kernel update_w_part\n"
                                "s1 kernel update_b_part\n"
                                "s1 copy 4 device to host\n"
                                "s1 record e3\n"
                                "host waits for e1\n"
                                "s1 record e5\n"
                                "s0 wait e5\n";

/* The log with NUMBERS for the bytes of an LsRun. */
static void check_log(char *got, const char *want)
{
    char bytes[32], plain[2048];
    snprintf(bytes, sizeof bytes, "copy %zu host", sizeof(LsRun));
    const char *at = strstr(got, bytes);
    ck_assert_ptr_nonnull(at);
    snprintf(plain, sizeof plain, "%.*scopy NUMBERS host%s", (int)(at - got), got,
             at + strlen(bytes));
    ck_assert_str_eq(plain, want);
    free(got);
}

START_TEST(a_step_is_ordered_by_events_alone)
{
    const Caller c = caller();
    const LsProgram p = unchecked(1);
    const void *const there[] = {c.x, c.label};
    LsNet *n = opened(&p, 1);
    OK(ls_net_set_stream(n, c.own, &e));
    issue_writes(&c);
    free(logged(n, there, TB));
    free(logged(n, there, TB));
    check_log(logged(n, there, TB - 1), by_events);
    ls_net_close(n);
    give_back(&c);
}
END_TEST

/* Only the bytes of the labels leave the host, and only they are read there. */
START_TEST(values_that_are_checked_go_by_the_host)
{
    const Caller c = caller();
    const LsProgram p = tiny_program(1);
    double loss;
    LsNet *n = opened(&p, 1);
    OK(ls_net_set_stream(n, c.own, &e));
    issue_writes(&c);
    free(logged(n, (const void *const[]){c.x, labels}, TB));
    char *text = logged(n, (const void *const[]){c.x, labels}, TB);
    ck_assert_ptr_nonnull(strstr(text, "rows of 4 device to device"));
    ck_assert_ptr_nonnull(strstr(text, " copy 64 host to device"));     /* labels, with padding */
    ck_assert_ptr_null(strstr(text, "host waits for s"));
    free(text);
    text = logged(n, (const void *const[]){c.x, c.label}, TB);
    ck_assert_ptr_nonnull(strstr(text, "copy 32 device to host"));
    ck_assert_ptr_nonnull(strstr(text, "host waits for s1"));
    free(text);
    labels[1] = TM;
    cudaMemcpyAsync(c.label, labels, sizeof labels, cudaMemcpyHostToDevice, c.own);
    REFUSED(ls_net_step(n, (const void *const[]){c.x, c.label}, TB, rate, &loss, &e),
            "label 2 is not one of");
    ls_net_close(n);
    give_back(&c);
}
END_TEST

/* The caller's stream reads the loss and writes the next batch over the last one as soon as a step
 * was issued. */
START_TEST(a_stream_sees_losses_and_may_write_the_next_batch)
{
    const Caller c = caller();
    const LsProgram p = unchecked(1);
    float was[STATES][TM * TF], is[STATES][TM * TF];
    double loss[5];
    const void *at = NULL;
    LsNet *n = opened(&p, 1);
    for (int k = 0; k < 5; k++) {
        features[0] = (float)k;
        loss[k] = step(n, all, TB);
    }
    values(n, was);
    OK(ls_net_begin(n, 3, &e));
    OK(ls_net_set_stream(n, c.own, &e));
    OK(ls_net_loss_there(n, &at, &e));
    issue_writes(&c);
    for (int k = 0; k < 5; k++) {
        c.pinned[0] = (float)k;
        cudaMemcpyAsync(c.x, c.pinned, sizeof features, cudaMemcpyHostToDevice, c.own);
        OK(ls_net_step(n, (const void *const[]){c.x, c.label}, TB, rate, NULL, &e));
        cudaMemcpyAsync(c.seen, at, sizeof *c.seen, cudaMemcpyDeviceToHost, c.own);
        cudaMemsetAsync(c.x, 0, sizeof features, c.own);
        cudaStreamSynchronize(c.own);
        ck_assert_float_eq(c.seen[0], (float)loss[k]);
    }
    values(n, is);
    ck_assert_mem_eq(was, is, sizeof is);
    ls_net_close(n);
    give_back(&c);
}
END_TEST

START_TEST(a_stream_that_cannot_be_used_is_refused)
{
    const Caller c = caller();
    const LsProgram p = tiny_program(1), two = tiny_program(2);
    cudaGraph_t graph;
    const void *at = NULL;
    double loss;
    LsNet *n = opened(&p, 1);
    REFUSED(ls_net_set_stream(n, (void *)c.label, &e), "no stream of the GPU that the net lies on");
    step(n, all, TB);
    OK(ls_net_set_stream(n, NULL, &e));
    step(n, all, TB);
    OK(ls_net_set_stream(n, c.own, &e));
    cudaStreamBeginCapture(c.own, cudaStreamCaptureModeThreadLocal);
    REFUSED(ls_net_set_stream(n, c.own, &e), "is being captured");
    REFUSED(ls_net_step(n, all, TB, rate, &loss, &e), "is being captured");
    cudaStreamEndCapture(c.own, &graph);
    cudaGraphDestroy(graph);
    step(n, all, TB);
    ls_net_close(n);
    n = opened(&two, 1);
    REFUSED(ls_net_loss_there(n, &at, &e), "an update of 2 batches has its loss on the host");
    ck_assert_ptr_null(at);
    ls_net_close(n);
    give_back(&c);
}
END_TEST

int main(void)
{
    const TTest *test[8];
    int n = 0;
    test[n++] = arrays_may_lie_on_the_device;
    test[n++] = inputs_on_the_device_give_the_same_bits;
    test[n++] = a_step_is_ordered_by_events_alone;
    test[n++] = values_that_are_checked_go_by_the_host;
    test[n++] = a_stream_sees_losses_and_may_write_the_next_batch;
    test[n++] = a_stream_that_cannot_be_used_is_refused;
    return run_in_folder("net_device", n, test);
}
