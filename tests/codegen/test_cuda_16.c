/* tests/codegen/test_cuda_16.c -- kernels of GPUs in 16 bits, node by node: those of whole
 * networks, run by the executor and by stand-ins of the libraries, give what the CPU's kernels give
 * of the same operands. */
#include "tests/support/compiled_model.h"
#include "tests/support/gpu_nodes.h"
#include "tests/support/less.h"
#include "tests/support/named_number.h"

typedef struct Net { const char *line; int64_t batch; LsType type; } Net;
static const Net net[] = {
    {"gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=24", 2, LS_BF16},
    {"unet --size=16 --width=4 --depth=1 --classes=3", 2, LS_F16},
    {"gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=19", 2, LS_F16},
    {"autoencoder --size=16 --width=8 --depth=4", 2, LS_F16},
    {"resnet18 --width=4 --size=32 --classes=5", 2, LS_BF16},
    {"googlenet --size=32 --classes=4", 1, LS_BF16},
};

static void fill(Rig *r, LsValueId v)
{
    const LsValue *x = &r->g->value[v.i];
    const bool positive = strstr(x->name, "var") != NULL;
    for (int64_t i = 0; i < ls_count(&x->shape); i++) {
        double a = number(x->name, i);
        rig_set(r, v, i, !ls_is_float(x->type) ? floor((a + 1) * 1.4) : positive ? 1.5 + a : a / 2);
    }
}

static void open_net(Rig *r, const Net *n)
{
    rig_open(r, 4);
    r->g = compiled_with(&r->cx, n->line, n->batch, (LsOptimizerOptions){.kind = LS_OPT_NONE},
                         (LsPrecision){.compute = n->type, .gpu = true});
    r->run.valid = r->g->batch;
    open_buffers(r);
    for (uint32_t i = 1; i < r->g->nvalue; i++)
        if (r->g->value[i].kind != LS_V_TEMP && r->g->value[i].kind != LS_V_CONST)
            fill(r, (LsValueId){i});
}

static uint32_t narrow_values(const LsGraph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        n += ls_is_16(g->value[i].type);
    return n;
}

static void check_net(const Net *n)
{
    Rig r;
    open_net(&r, n);
    ck_assert_uint_gt(narrow_values(r.g), 10);
    check_all_nodes(&r);
    rig_close(&r);
}

enum { NETS = sizeof net / sizeof *net, FEW = 2 };

START_TEST(kernels_of_networks_give_what_the_cpus_give)
{
    check_net(&net[_i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cuda_16");
    setenv("LOWERSET_CUDNN", LS_FAKE_CUDNN, 1);
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, kernels_of_networks_give_what_the_cpus_give, 0,
                        tests_do_all() ? NETS : FEW);
    return run_models("cuda_16", t);
}
