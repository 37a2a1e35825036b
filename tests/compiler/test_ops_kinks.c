/* tests/compiler/test_ops_kinks.c -- gradients at points with several slopes or none: they equal
 * PyTorch 2.15's, with gradient 1 at every result. Every case is differentiated twice: by the rows'
 * definitions in doubles, and by the program in floats. */
#include "tests/support/onnx_make.h"
#include "tests/support/onnx_node.h"
#include "tests/support/run_graph.h"
#include "tests/support/suite.h"

#include "base/name_ids.h"
#include "compiler/onnx/onnx_function_ops.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/passes/channels_last.h"

enum { MOST = 12 };
#define INF INFINITY

typedef struct Points { int n; double v[MOST]; } Points;
#define P(...) {sizeof (double[]){__VA_ARGS__} / 8, {__VA_ARGS__}}
#define ALONE {0}, {0}      /* there is no second operand */

typedef struct Case {
    const char *what;
    LsValueId (*make)(const LsValueId p[]);
    Points x, dx, y, dy;        /* points of one or two operands, and the gradients there */
} Case;

/* ---- the operators of the table ---- */
static LsValueId run(const char *op, int version, int nin, const LsValueId in[])
{
    Node n = {0};
    return node_one(&n, op, version, nin, in);
}

#define UNARY(name, op, version) \
    static LsValueId name(const LsValueId p[]) { return run(op, version, IN(p[0])); }
#define BINARY(name, op, version) \
    static LsValueId name(const LsValueId p[]) { return run(op, version, IN(p[0], p[1])); }
UNARY(relu, "Relu", 14)
UNARY(hard_swish, "HardSwish", 14) UNARY(abs_of, "Abs", 13) UNARY(selu, "Selu", 6)
    UNARY(hard_fifth, "HardSigmoid", 6) UNARY(root, "Sqrt", 13) UNARY(reciprocal, "Reciprocal", 13)
        UNARY(sign, "Sign", 13) UNARY(floor_of, "Floor", 13) UNARY(ceil_of, "Ceil", 13)
            UNARY(round_of, "Round", 11) UNARY(softplus, "Softplus", 1) UNARY(error, "Erf", 13)
                UNARY(logarithm, "Log", 13) UNARY(sigmoid, "Sigmoid", 13) UNARY(tanh_of, "Tanh", 13)
                    UNARY(gelu, "Gelu", 20) UNARY(length, "ReduceL2", 18)
                        UNARY(sum_of_abs, "ReduceL1", 18) UNARY(largest, "ReduceMax", 18)
                            UNARY(least, "ReduceMin", 18) UNARY(product, "ReduceProd", 18)
                                UNARY(log_sum_exp, "ReduceLogSumExp", 18) BINARY(prelu, "PRelu", 16)
                                    BINARY(max_of, "Max", 13) BINARY(min_of, "Min", 13)
                                        BINARY(div_of, "Div", 14) UNARY(softsign, "Softsign", 1)
                                            UNARY(asin_of, "Asin", 7) UNARY(acos_of, "Acos", 7)
                                                UNARY(acosh_of, "Acosh", 9)
                                                    UNARY(atanh_of, "Atanh", 9)
                                                        UNARY(mish, "Mish", 18)
                                                            BINARY(floor_mod, "Mod", 28)

                                                                static LsValueId
    with_float(const char *op, int version, const char *attr, float v, LsValueId x)
{
    Node n = {0};
    node_float(&n, attr, v);
    return node_one(&n, op, version, IN(x));
}

static LsValueId leaky(const LsValueId p[])
{
    return with_float("LeakyRelu", 16, "alpha", .25f, p[0]);
}
static LsValueId turned(const LsValueId p[])
{
    return with_float("LeakyRelu", 16, "alpha", -.5f, p[0]);
}
static LsValueId elu(const LsValueId p[]) { return with_float("Elu", 6, "alpha", 1.5f, p[0]); }
static LsValueId elu_below(const LsValueId p[]) { return with_float("Elu", 6, "alpha", -2, p[0]); }
static LsValueId trunc_mod(const LsValueId p[])
{
    Node n = {0};
    node_int(&n, "fmod", 1);
    return node_one(&n, "Mod", 13, IN(p[0], p[1]));
}
/* Rows 1, 3, 1 and 0 of an nn.Embedding with padding_idx, -1 for none. */
static LsValueId rows(LsValueId x, const char *padding)
{
    static const char call[] =
        "%%embedding : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args "
        "= (%%p_w, %%x%s), kwargs = {})";
    Make mk = {.cx = cx};
    Node n = {0};
    node_int(&n, "axis", 0);
    make_meta(&mk, &n.proto.base, 9, LS_META_CALL, ls_arena_printf(cx.arena, call, padding));
    return node_one(&n, "Gather", 13, IN(x, INTS(1, 3, 1, 0)));
}
static LsValueId rows_all(const LsValueId p[]) { return rows(p[0], ""); }
static LsValueId rows_no_padding(const LsValueId p[]) { return rows(p[0], ", -1"); }
static LsValueId rows_but_1(const LsValueId p[]) { return rows(p[0], ", 1"); }
static LsValueId elu_0(const LsValueId p[]) { return with_float("Elu", 6, "alpha", 0, p[0]); }
static LsValueId hard_sigmoid(const LsValueId p[])
{
    return with_float("HardSigmoid", 6, "alpha", 1 / 6.f, p[0]);
}

static LsValueId clip_to(LsValueId x, double lo, double hi)
{
    return run("Clip", 13, IN(x, scalar(lo), scalar(hi)));
}
static LsValueId clip(const LsValueId p[]) { return clip_to(p[0], -1, 3); }
static LsValueId relu6(const LsValueId p[]) { return clip_to(p[0], 0, 6); }
static LsValueId clip_one(const LsValueId p[]) { return clip_to(p[0], 1, 1); }
static LsValueId clip_crossed(const LsValueId p[]) { return clip_to(p[0], 3, 1); }
static LsValueId clip_low(const LsValueId p[]) { return run("Clip", 13, IN(p[0], scalar(0))); }
static LsValueId clip_high(const LsValueId p[])
{
    return run("Clip", 13, IN(p[0], NONE, scalar(3)));
}

/* x Clip(x + 3, 0, 6) / 6, as opsets before 14 have it. */
static LsValueId hard_swish_old(const LsValueId p[])
{
    LsValueId gate = clip_to(run("Add", 14, IN(p[0], scalar(3))), 0, 6);
    return run("Div", 14, IN(run("Mul", 14, IN(p[0], gate)), scalar(6)));
}

static LsValueId pow_by(LsValueId x, double e) { return run("Pow", 15, IN(x, scalar(e))); }
static LsValueId pow_0(const LsValueId p[]) { return pow_by(p[0], 0); }
static LsValueId pow_half(const LsValueId p[]) { return pow_by(p[0], 0.5); }
static LsValueId pow_1(const LsValueId p[]) { return pow_by(p[0], 1); }
static LsValueId pow_1_5(const LsValueId p[]) { return pow_by(p[0], 1.5); }
static LsValueId pow_2(const LsValueId p[]) { return pow_by(p[0], 2); }
static LsValueId pow_3(const LsValueId p[]) { return pow_by(p[0], 3); }
static LsValueId pow_neg(const LsValueId p[]) { return pow_by(p[0], -1); }
static LsValueId pow_quarter(const LsValueId p[]) { return pow_by(p[0], 0.25); }

/* A computed exponent; an exponent stored in the file could be taken for a setting. */
static LsValueId pow_of(const LsValueId p[])
{
    return run("Pow", 15, IN(p[0], run("Neg", 13, IN(run("Neg", 13, IN(p[1]))))));
}

static LsValueId where(const LsValueId p[])
{
    LsValueId above = run("Greater", 13, IN(p[0], scalar(0)));
    return run("Where", 16, IN(above, p[0], run("Mul", 14, IN(p[0], scalar(2)))));
}

/* The first two updates go to element 0, the third to element 1. */
static LsValueId scatter_by(const char *reduction, const LsValueId p[])
{
    Node n = {0};
    node_string(&n, "reduction", reduction);
    return node_one(&n, "ScatterElements", 18, IN(p[0], INTS(0, 0, 1), p[1]));
}
static LsValueId scatter_max(const LsValueId p[]) { return scatter_by("max", p); }
static LsValueId scatter_min(const LsValueId p[]) { return scatter_by("min", p); }
static LsValueId scatter_mul(const LsValueId p[]) { return scatter_by("mul", p); }
static LsValueId scatter_none(const LsValueId p[]) { return scatter_by("none", p); }
static LsValueId cum_prod(const LsValueId p[]) { return run("CumProd", 26, IN(p[0], INTS(0))); }
static LsValueId top_2(const LsValueId p[]) { return run("TopK", 11, IN(p[0], INTS(2))); }

static LsValueId image(LsValueId x)
{
    return run("Reshape", 14, IN(x, INTS(1, 1, -1)));
}
static LsValueId max_pool(const LsValueId p[])
{
    Node n = {0};
    node_ints(&n, "kernel_shape", LIST(2));
    node_ints(&n, "strides", LIST(2));
    return node_one(&n, "MaxPool", 12, IN(image(p[0])));
}
static LsValueId global_max_pool(const LsValueId p[])
{
    return run("GlobalMaxPool", 1, IN(image(p[0])));
}

/* ---- operators that are read as bodies of others ---- */
static LsValueId step(LsNames *names, LsValueId value[], const Onnx__NodeProto *p)
{
    static const char *const no_name = "";
    LsValueId in[4], out[4];
    for (size_t k = 0; k < p->n_input; k++)
        in[k] = value[ls_names_find(names, p->input[k])];
    LsOnnxNode n = {.cx = &cx, .g = g, .op = p->op_type, .domain = "", .name = "step",
                    .version = 17, .nin = (int)p->n_input, .nout = 1, .in = in,
                    .out_name = &no_name, .proto = p};
    ck_assert(ls_onnx_find(p->op_type)->build(&n, out));
    return value[ls_names_add(names, p->output[0])] = out[0];
}

static LsValueId by_body(const char *op, LsValueId x)
{
    const Onnx__FunctionProto *f = ls_onnx_body(cx.arena, op, 17);
    LsNames names = {.arena = cx.arena};
    LsValueId value[32] = {{0}};
    value[ls_names_add(&names, "X")] = x;
    for (size_t i = 0; i + 1 < f->n_node; i++)
        step(&names, value, f->node[i]);
    return step(&names, value, f->node[f->n_node - 1]);
}
static LsValueId celu(const LsValueId p[]) { return by_body("Celu", p[0]); }
static LsValueId shrink(const LsValueId p[]) { return by_body("Shrink", p[0]); }
static LsValueId thresholded(const LsValueId p[]) { return by_body("ThresholdedRelu", p[0]); }
static LsValueId standard(const LsValueId p[])
{
    return by_body("MeanVarianceNormalization", run("Reshape", 14, IN(p[0], INTS(1, 1, -1, 1))));
}

/* ---- norms ---- */
static LsValueId squares(LsValueId x) { return run("Mul", 14, IN(x, x)); }
static LsValueId sum(LsValueId x) { return run("ReduceSum", 13, IN(x)); }
static LsValueId root_of_sum(const LsValueId p[])
{
    return run("Sqrt", 13, IN(sum(squares(p[0]))));
}
static LsValueId root_of_pow(const LsValueId p[])
{
    return run("Sqrt", 13, IN(sum(pow_by(p[0], 2))));
}
static LsValueId pow_of_pow(const LsValueId p[]) { return pow_by(sum(pow_by(p[0], 2)), 0.5); }
static LsValueId root_of_squares(const LsValueId p[])
{
    return run("Sqrt", 13, IN(run("ReduceSumSquare", 18, IN(p[0]))));
}
static LsValueId norm_3(const LsValueId p[])
{
    return pow_by(sum(pow_by(run("Abs", 13, IN(p[0])), 3)), 1.0 / 3);
}
static LsValueId norm_most(const LsValueId p[])
{
    return run("ReduceMax", 18, IN(run("Abs", 13, IN(p[0]))));
}
static LsValueId hypotenuse(const LsValueId p[])
{
    return run("Sqrt", 13, IN(run("Add", 14, IN(squares(p[0]), squares(p[1])))));
}

/* torch.std, as its exporters write it: squares of differences, scaled by n / (n - 1). */
static LsValueId deviation(const LsValueId p[])
{
    LsValueId d = run("Sub", 14, IN(p[0], run("ReduceMean", 18, IN(p[0]))));
    LsValueId var = run("Mul", 14, IN(run("ReduceMean", 18, IN(squares(d))), scalar(2)));
    return run("Sqrt", 13, IN(run("Div", 14, IN(var, scalar(1)))));
}

/* torch.nn.functional.normalize: divided by the norm, but at least by eps. */
static LsValueId normalized(const LsValueId p[])
{
    LsValueId by = run("Clip", 13, IN(length(p), scalar(1e-6)));
    return run("Div", 14, IN(p[0], by));
}
static LsValueId normalized_max(const LsValueId p[])
{
    LsValueId by = run("Max", 13, IN(root_of_sum(p), scalar(1e-6)));
    return run("Div", 14, IN(p[0], by));
}

/* torch.nn.functional.cosine_similarity. */
static LsValueId cosine(const LsValueId p[])
{
    LsValueId unit[2];
    for (int k = 0; k < 2; k++)
        unit[k] = normalized(&p[k]);
    return sum(run("Mul", 14, IN(unit[0], unit[1])));
}

/* grid_sample of 1 2 4 8 along one axis. */
static LsValueId sampled(const char *padding, int64_t corners, LsValueId p)
{
    Node n = {0};
    LsShape grid = {3, {1, ls_count(ls_shape(g, p)), 1}};
    node_string(&n, "padding_mode", padding);
    node_int(&n, "align_corners", corners);
    return node_one(&n, "GridSample", 20, IN(reals_of(SHAPE(1, 1, 4), (float[]){1, 2, 4, 8}),
                                             ls_reshape(&cx, g, p, &grid)));
}
static LsValueId sampled_zeros(const LsValueId p[]) { return sampled("zeros", 0, p[0]); }
static LsValueId sampled_corners(const LsValueId p[]) { return sampled("zeros", 1, p[0]); }
static LsValueId sampled_border(const LsValueId p[]) { return sampled("border", 0, p[0]); }
static LsValueId sampled_reflected(const LsValueId p[]) { return sampled("reflection", 0, p[0]); }

#define S6 (1 / 6.0)
static const Case table[] = {
    {"Relu", relu, P(-1, -0.0, 0, 1), P(0, 0, 0, 1), ALONE},
    {"LeakyRelu", leaky, P(-1, -0.0, 0, 1), P(.25, .25, .25, 1), ALONE},
    {"LeakyRelu, slope below 0", turned, P(-1, -0.0, 0, 1), P(-.5, -.5, -.5, 1), ALONE},
    {"PRelu", prelu, P(-3, -1, 0, 1), P(.25, .25, .25, 1), P(.25), P(-4)},
    {"PRelu, slope below 0", prelu, P(-3, -1, 0, 1), P(-.5, -.5, -.5, 1), P(-.5), P(-4)},
    {"Elu", elu, P(-1, -0.0, 0, 1), P(.55181920528, 1.5, 1.5, 1), ALONE},
    {"Elu, alpha 0", elu_0, P(-1, -0.0, 0, 1), P(0, 0, 0, 1), ALONE},
    {"Selu", selu, P(-1, 0, 1), P(.64676862955, 1.7580993175506592, 1.0507010221481323), ALONE},
    {"Celu", celu, P(-1, 0, 1, 100), P(.36787944117, 1, 1, 1), ALONE},
    {"Softsign", softsign, P(-1, -0.0, 0, 3), P(.25, 1, 1, .0625), ALONE},
    {"Elu, alpha below 0", elu_below, P(-1, 0, 1), P(-.73575888234, -2, 1), ALONE},
    {"Mish", mish, P(-100, 0, 100), P(0, .6, 1), ALONE},
    {"Asin", asin_of, P(-1, 0, 1), P(INF, 1, INF), ALONE},
    {"Acos", acos_of, P(-1, 0, 1), P(-INF, -1, -INF), ALONE},
    {"Acosh", acosh_of, P(1, 2), P(INF, .57735026919), ALONE},
    {"Atanh", atanh_of, P(-1, 0, 1), P(INF, 1, INF), ALONE},
    {"Mod, fmod", trunc_mod, P(4, -4.5, 5), P(1, 1, 1), P(2, 2, 3), P(-2, 2, -1)},
    {"Mod", floor_mod, P(4, -4.5, 5), P(1, 1, 1), P(2, 2, 3), P(-2, 3, -1)},
    {"Shrink", shrink, P(-1, -.5, 0, .5, 1), P(1, 0, 0, 0, 1), ALONE},
    {"ThresholdedRelu", thresholded, P(0, 1, 3), P(0, 0, 1), ALONE},
    {"MeanVarianceNormalization of equals", standard, P(2, 2), P(0, 0), ALONE},
    {"Abs", abs_of, P(-1, -0.0, 0, 1), P(-1, 0, 0, 1), ALONE},
    {"Clip", clip, P(-3, -1, 0, 1, 3, 6), P(0, 0, 1, 1, 0, 0), ALONE},
    {"Clip to 0..6", relu6, P(-1, 0, 1, 6, 7), P(0, 0, 1, 0, 0), ALONE},
    {"Clip from 0", clip_low, P(-1, 0, 1), P(0, 0, 1), ALONE},
    {"Clip to 3", clip_high, P(-1, 3, 6), P(1, 0, 0), ALONE},
    {"Clip, equal bounds", clip_one, P(-1, 1, 3), P(0, 0, 0), ALONE},
    {"Clip, crossed bounds", clip_crossed, P(-1, 1, 2, 3, 6), P(0, 0, 0, 0, 0), ALONE},
    {"HardSigmoid", hard_sigmoid, P(-6, -3, 0, 1, 3, 6), P(0, 0, S6, S6, 0, 0), ALONE},
    {"HardSigmoid, alpha 0.2", hard_fifth, P(-2.5, 0, 2.5), P(0, .2, 0), ALONE},
    {"HardSwish", hard_swish, P(-6, -3, -1, 0, 1, 3, 6), P(0, 0, S6, .5, 5 * S6, 1, 1), ALONE},
    {"HardSwish by Clip", hard_swish_old, P(-6, -3, -1, 0, 1, 3, 6), P(0, 0, S6, .5, 5 * S6, 1, 1),
     ALONE},
    {"Max", max_of, P(0, 1, -0.0), P(.5, 0, .5), P(0, 2, 0), P(.5, 1, .5)},
    {"Min", min_of, P(0, 1, -0.0), P(.5, 1, .5), P(0, 2, 0), P(.5, 0, .5)},
    {"ReduceMax", largest, P(1, 3, 3, 2), P(0, .5, .5, 0), ALONE},
    {"ReduceMin", least, P(1, 3, 1, 2), P(.5, 0, .5, 0), ALONE},
    {"ReduceProd, two zeros", product, P(0, 2, 0), P(0, 0, 0), ALONE},
    {"ReduceProd, one zero", product, P(0, 2, 3), P(6, 0, 0), ALONE},
    {"Gather", rows_all, P(1, 2, 3, 4), P(1, 2, 0, 1), ALONE},
    {"Gather without padding_idx", rows_no_padding, P(1, 2, 3, 4), P(1, 2, 0, 1), ALONE},
    {"Gather with padding_idx 1", rows_but_1, P(1, 2, 3, 4), P(1, 0, 0, 1), ALONE},
    {"ReduceLogSumExp", log_sum_exp, P(1, 1, -INF), P(.5, .5, 0), ALONE},
    {"MaxPool", max_pool, P(1, 1, 3, 3), P(1, 0, 1, 0), ALONE},
    {"GlobalMaxPool", global_max_pool, P(1, 3, 3, 2), P(0, 1, 0, 0), ALONE},
    {"Sqrt", root, P(0, 4), P(INF, .25), ALONE},
    {"Pow 0", pow_0, P(0, 1), P(0, 0), ALONE},
    {"Pow 0.5", pow_half, P(0, -0.0, 1), P(INF, -INF, .5), ALONE},
    {"Pow 1", pow_1, P(0, 1), P(1, 1), ALONE},
    {"Pow 1.5", pow_1_5, P(0, 1), P(0, 1.5), ALONE},
    {"Pow 2", pow_2, P(0, -1), P(0, -2), ALONE},
    {"Pow 3", pow_3, P(0, 1), P(0, 3), ALONE},
    {"Pow -1", pow_neg, P(0, 1), P(-INF, -1), ALONE},
    {"Pow 0.25", pow_quarter, P(0, 1), P(INF, .25), ALONE},
    {"Pow", pow_of, P(0, 0, 0, 0, 0, 2, 0, -2), P(0, INF, 1, 0, 0, 0, -INF, -4),
     P(0, .5, 1, 2, 3, 0, -1, 2), P(0, 0, 0, 0, 0, .69314718056, -INF, NAN)},
    {"Sign", sign, P(-1, 0, 1), P(0, 0, 0), ALONE},
    {"Floor", floor_of, P(-1, 0, 1), P(0, 0, 0), ALONE},
    {"Ceil", ceil_of, P(-1, 0, 1), P(0, 0, 0), ALONE},
    {"Round", round_of, P(-.5, 0, .5), P(0, 0, 0), ALONE},
    {"Softplus", softplus, P(0, 50, -50, 100), P(.5, 1, 0, 1), ALONE},
    {"Erf", error, P(0, 30), P(1.1283791671, 0), ALONE},
    {"Log", logarithm, P(0, 1), P(INF, 1), ALONE},
    {"Div", div_of, P(1, 0, 2), P(INF, INF, .25), P(0, 0, 4), P(-INF, NAN, -.125)},
    {"Reciprocal", reciprocal, P(0, 2), P(-INF, -.25), ALONE},
    {"Sigmoid", sigmoid, P(0, 100, -100), P(.25, 0, 0), ALONE},
    {"Tanh", tanh_of, P(0, 100, -100), P(1, 0, 0), ALONE},
    {"Gelu", gelu, P(0, 100, -100), P(.5, 1, 0), ALONE},
    {"GridSample", sampled_zeros, P(-1, -.75, -.25, .75, 1), P(2, 2, 4, -16, -16), ALONE},
    {"GridSample, corners", sampled_corners, P(-1, 1), P(1.5, -12), ALONE},
    {"GridSample border", sampled_border, P(-1, -.75, -.25, .75, 1), P(0, 0, 4, 0, 0), ALONE},
    {"GridSample reflection", sampled_reflected, P(-1, -.75, -.25, .75, 1), P(0, 0, 4, 0, 0),
     ALONE},
    {"ScatterElements max", scatter_max, P(2, 5, 1), P(1 / 3.0, .5, 1), P(2, 2, 5),
     P(1 / 3.0, 1 / 3.0, .5)},
    {"ScatterElements min", scatter_min, P(2, 5, 1), P(1 / 3.0, .5, 1), P(2, 2, 5),
     P(1 / 3.0, 1 / 3.0, .5)},
    {"ScatterElements twice", scatter_none, P(2, 5, 1), P(0, 0, 1), P(2, 3, 5), P(1, 1, 1)},
    {"ScatterElements mul", scatter_mul, P(0, 5, 0), P(6, 0, 1), P(2, 3, 0), P(0, 0, 5)},
    {"ScatterElements mul of zeros", scatter_mul, P(2, 5, 1), P(0, 0, 1), P(0, 0, 0), P(0, 0, 5)},
    {"ScatterElements mul of one zero", scatter_mul, P(2, 5, 1), P(0, 4, 1), P(0, 3, 4),
     P(6, 0, 5)},
    {"CumProd at 0", cum_prod, P(2, 0, 3, 4), P(1, 32, 0, 0), ALONE},
    {"CumProd at zeros", cum_prod, P(0, 2, 0, 3), P(3, 0, 0, 0), ALONE},
    {"TopK", top_2, P(1, 3, 1, 1), P(1, 1, 0, 0), ALONE},
    {"Where", where, P(-1, 0, 1), P(2, 2, 1), ALONE},
    {"ReduceL2", length, P(0, 0), P(0, 0), ALONE},
    {"ReduceL2 elsewhere", length, P(3, -4), P(.6, -.8), ALONE},
    {"ReduceL1", sum_of_abs, P(0, -0.0, -1), P(0, 0, -1), ALONE},
    {"Sqrt(ReduceSum(x x))", root_of_sum, P(0, 0), P(0, 0), ALONE},
    {"Sqrt(ReduceSum(Pow(x, 2)))", root_of_pow, P(0, 0), P(0, 0), ALONE},
    {"Sqrt(ReduceSumSquare(x))", root_of_squares, P(0, 0), P(0, 0), ALONE},
    {"Pow(ReduceSum(Pow(x, 2)), 0.5)", pow_of_pow, P(0, 0), P(0, 0), ALONE},
    {"Pow(ReduceSum(Pow(|x|, 3)), 1/3)", norm_3, P(0, 0), P(0, 0), ALONE},
    {"the same elsewhere", norm_3, P(0, -2), P(0, -1), ALONE},
    {"ReduceMax(|x|)", norm_most, P(1, 1, -1), P(1 / 3.0, 1 / 3.0, -1 / 3.0), ALONE},
    {"Sqrt(x x + y y)", hypotenuse, P(0, 3), P(0, .6), P(0, 4), P(0, .8)},
    {"standard deviation", deviation, P(1, 1), P(0, 0), ALONE},
    {"x / Clip(norm)", normalized, P(0, 0), P(1e6, 1e6), ALONE},
    {"x / Clip(norm) elsewhere", normalized, P(3, 4), P(.032, -.024), ALONE},
    {"x / Max(norm)", normalized_max, P(0, 0), P(1e6, 1e6), ALONE},
    {"cosine", cosine, P(0, 0), P(6e5, 8e5), P(3, 4), P(0, 0)},
    {"cosine of zeros", cosine, P(0, 0), P(0, 0), P(0, 0), P(0, 0)},
};
enum { NTABLE = sizeof table / sizeof *table };

static int operands(int k) { return table[k].y.n > 0 ? 2 : 1; }
static const Points *gradient(int k, int j) { return j == 0 ? &table[k].dx : &table[k].dy; }
static const char *name_of(int k, int j)
{
    return ls_arena_printf(cx.arena, "%c%d", "xy"[j], k);
}

static LsValueId param_of(int k, int j)
{
    const Points *p = j == 0 ? &table[k].x : &table[k].y;
    float *v = ls_arena_alloc(cx.arena, MOST, sizeof *v);
    for (int i = 0; i < p->n; i++)
        v[i] = (float)p->v[i];
    return ls_value_add(&cx, g, LS_V_PARAM, name_of(k, j), LS_REAL, &SHAPE(p->n), v);
}

/* All cases in one graph, whose loss is the sum of all results. */
static void build(void)
{
    LsValueId loss = {0};
    for (int k = 0; k < NTABLE; k++) {
        LsValueId param[2] = {{0}};
        ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, (uint32_t)k, table[k].what});
        for (int j = 0; j < operands(k); j++)
            param[j] = param_of(k, j);
        LsValueId y = ls_reduce_to(&cx, g, table[k].make(param), (LsShape){0});
        loss = ls_is(loss) ? ls_append2(&cx, g, LS_OP_ADD, loss, y, NULL) : y;
    }
    g->objective.loss = loss;
    ck_assert(ls_autodiff(&cx, g));
}

static void compare(int k, int j, const double got[])
{
    const Points *want = gradient(k, j);
    for (int i = 0; i < want->n; i++) {
        double w = want->v[i];
        bool same = isnan(w) ? isnan(got[i])
            : isinf(w) ? got[i] == w : fabs(got[i] - w) <= 1e-5 * (1 + fabs(w));
        ck_assert_msg(same, "%s: gradient %d of %c is %.9g, PyTorch's is %.9g", table[k].what, i,
                      "xy"[j], got[i], w);
    }
}

/* The gradient of operand j of case k; none for a step, which passes no gradient. Passes renumber
 * values, but names stay. */
static LsValueId grad_of(int k, int j)
{
    const char *name = name_of(k, j);
    for (uint32_t i = 0; i < g->ngrad; i++)
        if (strcmp(g->value[g->grad[i].param.i].name, name) == 0)
            return g->grad[i].grad;
    return (LsValueId){0};
}

START_TEST(gradients_at_kinks_are_those_of_pytorch_by_the_rows)
{
    build();
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    for (int k = 0; k < NTABLE; k++)
        for (int j = 0; j < operands(k); j++) {
            static const double zero[MOST];
            LsValueId d = grad_of(k, j);
            compare(k, j, ls_is(d) ? e.v[d.i] : zero);
        }
}
END_TEST

START_TEST(gradients_at_kinks_are_those_of_pytorch_in_the_program)
{
    build();
    ck_assert(ls_dce(&cx, g) && ls_layout(&cx, g, NULL) && ls_fuse(&cx, g) && ls_verify(&cx, g));
    LsRunGraph *r = ls_run_graph_new(&cx, g, 4);
    ck_assert_ptr_nonnull(r);
    for (int k = 0; k < NTABLE; k++)
        for (int j = 0; j < operands(k); j++) {
            LsValueId d = grad_of(k, j);
            double got[MOST] = {0};
            if (ls_is(d))
                ls_run_graph_until(r, d);
            for (int i = 0; ls_is(d) && i < gradient(k, j)->n; i++)
                got[i] = ls_run_graph_get(r, d, i);
            compare(k, j, got);
        }
    ls_run_graph_free(r);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_kinks");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, gradients_at_kinks_are_those_of_pytorch_by_the_rows);
    tcase_add_test(tc, gradients_at_kinks_are_those_of_pytorch_in_the_program);
    return run_tests("ops_kinks", tc);
}
