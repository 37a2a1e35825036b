/* tests/support/tiny_program.h -- a hand-written program with all parts of a generated program: a
 * linear classifier over x [4, 3, 2] with weights [2, 3, 2], both channels-last, momentum,
 * accumulation, a running statistic and an evaluation form. */
#ifndef LS_TESTS_SUPPORT_TINY_PROGRAM_H
#define LS_TESTS_SUPPORT_TINY_PROGRAM_H

#include "runtime/ls_program.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TB = 4,
    TC = 3,
    TS = 2,
    TF = TC * TS,
    TM = 2
}; /* batch, channels, places, features, classes */

enum {
    ST_W = 0,
    ST_B = 64,
    ST_WV = 128,
    ST_BV = 192,
    ST_WS = 256,
    ST_BS = 320,
    ST_MEAN = 384,
    ST_END = 388,
    ST_SCALE = 448, ST_GOOD = 452, ST_SKIPS = 456, ST_SCALED_END = 464
};
/* Called after every training step's last kernel; tests look from here into a running trainer. */
static void (*tiny_spy)(const LsRun *run);
static int tiny_accumulate = 1;
/* Its gradients are scaled, by TINY_SCALE at first, which doubles after TINY_PERIOD good updates;
 * an update with a gradient that is not finite is bad (tiny_scaled). */
static bool tiny_scales, tiny_bad;
static float tiny_scale_now = 1;
static uint64_t tiny_bad_steps;         /* bit k: the gradient of b is infinite in micro-batch k */
enum { TINY_SCALE = 8, TINY_PERIOD = 4 };
static bool tiny_weighs;        /* its loss reports the number of labels that count: those that are
                                 * not -1 */
/* The fault of the gradient's kernel. */
static enum { TINY_RIGHT, TINY_DOUBLES_B, TINY_SKIPS_LAST_SAMPLE, TINY_NOT_FINITE } tiny_wrong;

static void tiny_logits_part(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    const float *x = arg[0], *w = arg[1], *b = arg[2];
    float *y = arg[3];
    (void)run;
    if (lo == 0)
        tiny_scale_now = tiny_scales ? w[(ST_SCALE - ST_W) / 4] : 1;
    for (int64_t n = lo; n < hi; n++)
        for (int m = 0; m < TM; m++) {
            float sum = b[m];
            for (int f = 0; f < TF; f++)
                sum += x[n * TF + f] * w[m * TF + f];
            y[n * TM + m] = sum;
        }
}

static void tiny_logits(LsRun *run, void *const arg[])
{
    ls_parallel(run, tiny_logits_part, TB, arg);
}

static void tiny_loss(LsRun *run, void *const arg[])
{
    const float *y = arg[0];
    const int64_t *label = arg[1];
    float *loss = arg[2], *dy = arg[3];
    float sum = 0, count = 0;
    for (int64_t n = 0; n < TB; n++)
        count += n < run->valid && label[n] >= 0;
    for (int64_t n = 0; n < TB; n++) {
        float m = fmaxf(y[2 * n], y[2 * n + 1]);
        float z = expf(y[2 * n] - m) + expf(y[2 * n + 1] - m);
        bool counts = n < run->valid && label[n] >= 0;
        if (counts)
            sum += logf(z) + m - y[2 * n + label[n]];
        for (int k = 0; dy && k < TM; k++)
            dy[2 * n + k] =
                counts ? (expf(y[2 * n + k] - m) / z - (label[n] == k)) / count : 0;
    }
    *loss = count > 0 ? sum / count : 0;
    if (tiny_weighs)
        loss[1] = count;
}

static void tiny_grad(LsRun *run, void *const arg[])
{
    const float *x = arg[0], *dy = arg[1];
    float *dw = arg[2], *db = arg[3], *scratch = arg[4];
    (void)run;
    int samples = tiny_wrong == TINY_SKIPS_LAST_SAMPLE ? TB - 1 : TB;
    memset(dw, 0, sizeof(float) * TM * TF);
    for (int m = 0; m < TM; m++) {
        scratch[m] = 0;
        for (int n = 0; n < samples; n++) {
            scratch[m] += dy[n * TM + m];
            for (int f = 0; f < TF; f++)
                dw[m * TF + f] += dy[n * TM + m] * x[n * TF + f];
        }
        db[m] = tiny_wrong == TINY_NOT_FINITE ? NAN
                : tiny_wrong == TINY_DOUBLES_B ? 2 * scratch[m] : scratch[m];
    }
    for (int k = 0; tiny_scales && k < TM * TF; k++)
        dw[k] *= tiny_scale_now;
    tiny_bad = tiny_scales && tiny_bad && !run->first;
    for (int m = 0; tiny_scales && m < TM; m++)
        tiny_bad |= !isfinite(db[m] *= run->step < 64 && (tiny_bad_steps >> run->step & 1)
                                           ? INFINITY
                                           : tiny_scale_now);
}

static void tiny_update(LsRun *run, const float *g, float *p, float *v, float *sum, int n)
{
    for (int k = 0; k < n; k++) {
        sum[k] = (run->first ? 0 : sum[k])
                 + g[k] / tiny_scale_now * (float)(run->share / tiny_accumulate);
        if (!run->apply || tiny_bad)
            continue;
        v[k] = 0.9f * v[k] + sum[k];
        p[k] -= (float)run->lr * v[k];
    }
}

static void tiny_update_w(LsRun *run, void *const arg[])
{
    tiny_update(run, arg[0], arg[1], arg[2], arg[3], TM * TF);
}

/* s: scale, counter, skips. */
static void tiny_move_scale(float s[4])
{
    s[1] = tiny_bad ? 0 : s[1] + 1;
    s[0] *= tiny_bad ? 0.5f : s[1] == TINY_PERIOD ? 2 : 1;
    s[1] = s[1] == TINY_PERIOD ? 0 : s[1];
    s[2] += tiny_bad;
    s[3] = tiny_bad ? s[3] + 1 : 0;
}

static void tiny_update_b(LsRun *run, void *const arg[])
{
    float *mean = arg[4];
    tiny_update(run, arg[0], arg[1], arg[2], arg[3], TM);
    if (!tiny_bad)
        *mean = 0.9f * *mean + 0.1f * ((const float *)arg[5])[0];
    if (tiny_scales && run->apply)
        tiny_move_scale(mean + (ST_SCALE - ST_MEAN) / 4);
    if (tiny_spy)
        tiny_spy(run);
}

#define TENSOR(n, last, r, ...) {.name = n, .channels_last = last, .rank = r, .dim = {__VA_ARGS__}
#define IN_STATE(o) .at = {LS_AT_STATE, o}}
#define IN_ARENA(o) .at = {LS_AT_ARENA, o}}

/* Places of the float data in tiny_onnx, unaligned on purpose. */
enum {
    TINY_W = 7,
    TINY_B = TINY_W + 4 * TM * TF + 3,
    TINY_MEAN = TINY_B + 8,
    TINY_ONNX = TINY_MEAN + 9
};
enum { AR_Y = 0, AR_LOSS = 64, AR_DY = 128, AR_DW = 192, AR_DB = 256, AR_WORK = 320, AR_END = 328 };

static const LsStateTensor tiny_state[] = {
    {TENSOR("w", true, 3, TM, TC, TS), IN_STATE(ST_W), LS_STATE_PARAM, NULL, TINY_W},
    {TENSOR("b", false, 1, TM), IN_STATE(ST_B), LS_STATE_PARAM, NULL, TINY_B},
    {TENSOR("w.m", true, 3, TM, TC, TS), IN_STATE(ST_WV), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("b.m", false, 1, TM), IN_STATE(ST_BV), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("w.sum", true, 3, TM, TC, TS), IN_STATE(ST_WS), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("b.sum", false, 1, TM), IN_STATE(ST_BS), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("mean", false, 0, 0), IN_STATE(ST_MEAN), LS_STATE_STAT, NULL, TINY_MEAN},
};

static const LsStateTensor tiny_scaling_state[] = {
    {TENSOR("loss_scale", false, 0, 0), IN_STATE(ST_SCALE), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("loss_scale.counter", false, 0, 0), IN_STATE(ST_GOOD), LS_STATE_MOMENT, NULL, -1},
    {TENSOR("loss_scale.skips", false, 1, 2), IN_STATE(ST_SKIPS), LS_STATE_MOMENT, NULL, -1},
};

static const LsInput
    tiny_input[] = {{TENSOR("x", true, 3, TB, TC, TS), .at = {LS_AT_INPUT, 0}},
                    false,
                    0,
                    0,
                    LS_USUAL_NONE},
    {{.name = "label", .type = LS_DT_I64, .rank = 1, .dim = {TB}, .at = {LS_AT_INPUT, 1}},
     true,
     0,
     0,
     LS_USUAL_NONE},
};

static const LsAddress tiny_address[] = {
    /* 0 */ {LS_AT_INPUT, 0}, {LS_AT_STATE, ST_W}, {LS_AT_STATE, ST_B}, {LS_AT_ARENA, AR_Y},
    /* 4 */ {LS_AT_ARENA, AR_Y}, {LS_AT_INPUT, 1}, {LS_AT_ARENA, AR_LOSS}, {LS_AT_ARENA, AR_DY},
    /* 8 */ {LS_AT_INPUT, 0}, {LS_AT_ARENA, AR_DY}, {LS_AT_ARENA, AR_DW}, {LS_AT_ARENA, AR_DB},
            {LS_AT_ARENA, AR_WORK},
    /* 13 */ {LS_AT_ARENA, AR_DW}, {LS_AT_STATE, ST_W}, {LS_AT_STATE, ST_WV}, {LS_AT_STATE, ST_WS},
    /* 17 */ {LS_AT_ARENA, AR_DB}, {LS_AT_STATE, ST_B}, {LS_AT_STATE, ST_BV}, {LS_AT_STATE, ST_BS},
             {LS_AT_STATE, ST_MEAN}, {LS_AT_INPUT, 0},
    /* 23 */ {LS_AT_ARENA, AR_Y}, {LS_AT_INPUT, 1}, {LS_AT_ARENA, AR_LOSS}, {LS_AT_NONE, 0},
};
static const int64_t tiny_count[] = {TB * TM, 1, TB * TM, TM * TF, TM, 0};
static const uint8_t tiny_type[6] = {LS_DT_REAL};

static const LsStep tiny_train[] = {
    {tiny_logits, "fc", "Gemm", 4, 3, 1, 0, 0, false, 1, 0},
    {tiny_loss, "loss", "SoftmaxCrossEntropyLoss", 4, 2, 2, 4, 1, false, 2, 0},
    {tiny_grad, "fc dw", "Gemm", 5, 2, 2, 8, 3, false, 3, 8},
    {tiny_update_w, "w", "SGD", 4, 4, 0, 13, 5, false, 4, 0},
    {tiny_update_b, "b", "SGD", 6, 6, 0, 17, 5, false, 5, 0},
};
static const LsStep tiny_eval[] = {
    {tiny_logits, "fc", "Gemm", 4, 3, 1, 0, 0, false, 1, 0},
    {tiny_loss, "loss", "SoftmaxCrossEntropyLoss", 4, 2, 1, 23, 1, false, 2, 0},
};
static const LsWatch tiny_watch[] = {
    {TENSOR("y", false, 2, TB, TM), IN_ARENA(AR_Y), "out/y", 0, false, 0},
    {TENSOR("w", true, 3, TM, TC, TS), IN_ARENA(AR_DW), "grad/w", 3, true, 0},
    {TENSOR("b", false, 1, TM), IN_ARENA(AR_DB), "grad/b", 2, false, 0},
};
static const LsWatch tiny_eval_watch[] = {
    {TENSOR("y", false, 2, TB, TM), IN_ARENA(AR_Y), "out/y", 0, false, 0},
    {TENSOR("y", false, 2, TB, TM), IN_ARENA(AR_Y), "logits", 1, true, 0},
};

/* Filled by tiny_program: initial values in ONNX's order are w = 0.1 * (k - 5), b = 0.5, -0.5, mean
 * = 2. */
static unsigned char tiny_onnx[TINY_ONNX];

#ifdef LS_TINY_CUDA
#include "tests/support/tiny_cuda.h"
#else
static inline LsProgram tiny_on_device(LsProgram p) { return p; }
#endif

static LsProgram tiny_program(int accumulate)
{
    float w[TM * TF], b[TM] = {0.5f, -0.5f}, mean = 2;
    tiny_accumulate = accumulate;
    tiny_scales = false;
    memset(tiny_onnx, '#', sizeof tiny_onnx);
    for (int k = 0; k < TM * TF; k++)
        w[k] = 0.1f * (float)(k - 5);
    memcpy(tiny_onnx + TINY_W, w, sizeof w);
    memcpy(tiny_onnx + TINY_B, b, sizeof b);
    memcpy(tiny_onnx + TINY_MEAN, &mean, sizeof mean);
    return tiny_on_device((LsProgram){
        .about.model = "tiny.onnx",
        .about.plan_hash = "0123abcd",
        .about.strategy = "none",
        .about.loss = "ce",
        .about.optimizer = "sgd",
        .real_bytes = 4,
        .division.samples = TB,
        .division.batches = accumulate,
        .bytes.budget = 1 << 20,
        .bytes.state = ST_END,
        .bytes.arena = AR_END,
        .state = tiny_state,
        .nstate = sizeof tiny_state / sizeof tiny_state[0],
        .input = tiny_input,
        .ninput = 2,
        .argument.address = tiny_address,
        .argument.count = tiny_count,
        .argument.type = tiny_type,
        .phase.train = {tiny_train,
                        5,
                        tiny_watch,
                        3,
                        {LS_AT_ARENA, AR_LOSS},
                        AR_END,
                        AR_END,
                        NULL,
                        NULL,
                        {LS_AT_NONE, 0}},
        .phase.eval = {tiny_eval,
                       2,
                       tiny_eval_watch,
                       2,
                       {LS_AT_ARENA, AR_LOSS},
                       AR_END,
                       AR_END,
                       NULL,
                       NULL,
                       {LS_AT_NONE, 0}},
        .target.classes = TM,
        .target.class_axis = 1,
        .file.onnx = tiny_onnx,
        .file.bytes = sizeof tiny_onnx,
        .defaults.lr = 0.1,
    });
}

/* The same program, with a loss that is a mean over the labels that are not -1. */
static inline LsProgram tiny_weighed(int accumulate)
{
    LsProgram p = tiny_program(accumulate);
    tiny_weighs = p.target.has_ignore = true;
    p.target.ignore = -1;
    p.phase.train.weight = p.phase.eval.weight = (LsAddress){LS_AT_ARENA, AR_LOSS + 4};
    return p;
}

/* The same program, with a loss scale. */
static inline LsProgram tiny_scaled(int accumulate)
{
    enum {
        N = sizeof tiny_state / sizeof *tiny_state,
        MORE = sizeof tiny_scaling_state / sizeof *tiny_scaling_state
    };
    static LsStateTensor all[N + MORE];
    LsProgram p = tiny_program(accumulate);
    memcpy(all, tiny_state, sizeof tiny_state);
    memcpy(all + N, tiny_scaling_state, sizeof tiny_scaling_state);
    tiny_scales = true;
    tiny_bad = false;
    p.state = all;
    p.nstate = N + MORE;
    p.bytes.state = ST_SCALED_END;
    p.scaling = (LsScaling){
        {LS_AT_STATE, ST_SCALE}, {LS_AT_STATE, ST_GOOD}, {LS_AT_STATE, ST_SKIPS}, TINY_SCALE};
    return p;
}

/* n samples with labels that can be learned. */
static inline void tiny_data(int n, float features[], int64_t label[])
{
    for (int k = 0; k < n * TF; k++)
        features[k] = (float)((k * 37 + 11) % 23) / 11.5f - 1;
    for (int k = 0; k < n; k++)
        label[k] = features[k * TF] + features[k * TF + 1] > 0;
}

/* A file's text, cut to the buffer; "" if there is no file. */
static inline void tiny_read(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(to, 1, room - 1, f) : 0;
    to[n] = '\0';
    if (f)
        fclose(f);
}

#endif
