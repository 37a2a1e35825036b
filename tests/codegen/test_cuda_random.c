/* tests/codegen/test_cuda_random.c -- random graphs of all operators, as GPUs compute them in 16
 * bits: every kernel gives what the CPU's kernel gives of the same operands. */
#include "compiler/passes/channels_last.h"
#include "compiler/passes/passes.h"
#include "compiler/patterns/patterns.h"
#include "tests/differential/random_net.h"
#include "tests/support/gpu_nodes.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

enum { GRAPHS = 60, FEW = 6, OPERATORS = 30 };

/* The passes of compiler/pipeline.c. */
static bool passes(Net *net, LsType type, int k)
{
    static const LsOptimizerKind first[] = {LS_ADAFACTOR, LS_MUON, LS_FREE_ADAMW, LS_NADAM,
                                            LS_APOLLO, LS_ADAMW};
    const LsOptimizerOptions o = {.kind = k < FEW ? first[k] : (LsOptimizerKind)(k % LS_OPT_NONE),
                                  .hyper.beta1 = 0.9,
                                  .hyper.beta2 = 0.99,
                                  .hyper.eps = 1e-3,
                                  .hyper.momentum = 0.9,
                                  .hyper.decay = 0.1,
                                  .hyper.momentum_decay = 0.004,
                                  .hyper.trust = 0.01,
                                  .hyper.power = 0.8,
                                  .hyper.floor = 1e-6,
                                  .hyper.floor_p = 1e-3,
                                  .hyper.most = 1,
                                  .hyper.rate_part = 0.1,
                                  .hyper.rank = 1,
                                  .hyper.scale = 2,
                                  .hyper.gap = 2,
                                  .hyper.growth = 1.01,
                                  .hyper.bf16 = k < FEW && first[k] == LS_ADAMW,
                                  .hyper.by_rate = 2};
    const LsPrecision as = {.compute = type, .gpu = true};
    LsCtx *cx = &net->cx;
    LsGraph *g = net->a;
    return ls_patterns(cx, g) && ls_heads(cx, g) && ls_autodiff(cx, g) && ls_optimizer(cx, g, &o)
           && ls_dce(cx, g) && ls_layout(cx, g, NULL) && ls_residual(cx, g)
           && ls_precision(cx, g, &as) && ls_verify(cx, g) && ls_fuse(cx, g) && ls_split(cx, g)
           && ls_verify(cx, g);
}

/* The numbers of the net's inputs, parameters and states. */
static void fill(Rig *r, const Net *net)
{
    for (uint32_t i = 1; i < r->g->nvalue; i++) {
        const LsValueId v = {i};
        const LsValue *x = &r->g->value[i];
        const void *data = x->data;
        for (uint32_t k = 0; k < r->g->ninput; k++)
            data = r->g->input[k].i == i ? net->input[k] : data;
        for (int64_t k = 0; x->kind != LS_V_TEMP && x->kind != LS_V_CONST && data != NULL
                            && k < ls_count(&x->shape);
             k++)
            rig_set(r, v, k,
                    x->type == LS_REAL  ? (double)((const float *)data)[k]
                    : x->type == LS_I64 ? (double)((const int64_t *)data)[k]
                                        : ((const uint8_t *)data)[k]);
    }
}

START_TEST(kernels_of_random_graphs_give_what_the_cpus_give)
{
    Net *net = net_new((uint64_t)_i + 1, OPERATORS, true);
    Rig r;
    if (ls_is(net->b->objective.loss) && passes(net, _i % 2 == 0 ? LS_BF16 : LS_F16, _i)) {
        rig_open(&r, 4);
        r.g = net->a;
        r.run.valid = r.g->batch;
        open_buffers(&r);
        fill(&r, net);
        check_all_nodes(&r);
        rig_close(&r);
    }
    net_free(net);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cuda_random");
    setenv("LOWERSET_CUDNN", LS_FAKE_CUDNN, 1);
    tcase_set_timeout(t, 300);
    const char *one = getenv("LS_CUDA_RANDOM");        /* the number of one graph */
    const int first = one != NULL ? atoi(one) : 0;
    tcase_add_loop_test(t, kernels_of_random_graphs_give_what_the_cpus_give, first,
                        one != NULL ? first + 1 : tests_part(GRAPHS, FEW));
    return run_tests("cuda_random", t);
}
