/* models/layers.c -- the layers of the zoo, each with its weights and the size of its result. */
#include "models/layers.h"

#include <inttypes.h>
#include <math.h>

static int64_t or_one(int64_t n) { return n > 0 ? n : 1; }

/* fan_in and fan_out as torch.nn.init counts them: dim[1] and dim[0] times the kernel's area. */
static LsWeight drawn(const char *name, LsDraw draw, int rank, const int64_t dim[])
{
    LsWeight w = {.name = name, .rank = rank, .fill = LS_FILL_NORMAL};
    double area = 1;
    for (int i = 0; i < rank; i++) {
        w.dim[i] = dim[i];
        area *= i < 2 ? 1 : (double)dim[i];
    }
    switch (draw.kind) {
    case LS_DRAW_DEFAULT:   /* kaiming_uniform with a = sqrt 5: gain sqrt(1/3), bound sqrt 3 times
                             * that */
        w.fill = LS_FILL_UNIFORM;
        w.scale = (float)(1 / sqrt(area * (double)dim[1]));
        break;
    case LS_DRAW_FAN_OUT:
        w.scale = (float)sqrt(2 / (area * (double)dim[0]));
        break;
    case LS_DRAW_FAN_IN:
        w.scale = (float)sqrt(2 / (area * (double)dim[1]));
        break;
    case LS_DRAW_NORMAL:
        w.scale = draw.deviation;
        break;
    }
    return w;
}

/* A layer's weight of that shape and, if requested, its bias of n elements; in[1], in[2] receive
 * the names. */
static int weight_and_bias(LsBuild *b, const char *at, LsDraw draw, int rank, const int64_t dim[],
                           int64_t n, bool bias, const char *in[])
{
    in[1] = ls_build_name(b, "%s.weight", at);
    ls_build_weight(b, drawn(in[1], draw, rank, dim));
    if (!bias)
        return 2;
    in[2] = ls_build_name(b, "%s.bias", at);
    LsWeight w = drawn(in[2], (LsDraw){.kind = LS_DRAW_DEFAULT}, rank, dim);
    w.fill = draw.zero_bias ? LS_FILL_ZERO : LS_FILL_UNIFORM;
    w.rank = 1;
    w.dim[0] = n;
    ls_build_weight(b, w);
    return 3;
}

static void window_attrs(LsBuild *b, int64_t kernel, int64_t stride, int64_t pad)
{
    ls_build_ints_attr(b, "kernel_shape", 2, (int64_t[]){kernel, kernel});
    ls_build_ints_attr(b, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    ls_build_ints_attr(b, "strides", 2, (int64_t[]){stride, stride});
}

/* Positions of a window in one direction; 0 after an error. */
static int64_t windows(LsBuild *b, const char *at, int64_t in, int64_t kernel, int64_t stride,
                       int64_t pad, bool ceil)
{
    int64_t room = in + 2 * pad - kernel;
    if (room < 0) {
        ls_build_fail(b, "'%s': a window of %" PRId64 " does not fit its input of %" PRId64
                      ": take a larger --size", at, kernel, in + 2 * pad);
        return 1;
    }
    return (room + (ceil ? stride - 1 : 0)) / stride + 1;
}

LsTensor ls_layer_conv(LsBuild *b, const char *at, LsTensor x, LsConv c)
{
    const char *in[3] = {x.name};
    int64_t stride = or_one(c.stride), dilation = or_one(c.dilation);
    int64_t reach = dilation * (c.kernel - 1) + 1;
    int nin = weight_and_bias(b, at, b->conv, 4,
                              (int64_t[]){c.out, x.dim[1], c.kernel, c.kernel}, c.out, c.bias, in);
    LsTensor y = {.rank = 4, .dim = {x.dim[0], c.out,
                  windows(b, at, x.dim[2], reach, stride, c.pad, false),
                  windows(b, at, x.dim[3], reach, stride, c.pad, false)}};
    y = ls_build_node(b, "Conv", at, nin, in, y);
    ls_build_ints_attr(b, "dilations", 2, (int64_t[]){dilation, dilation});
    ls_build_int_attr(b, "group", 1);
    window_attrs(b, c.kernel, stride, c.pad);
    return y;
}

LsTensor ls_layer_deconv(LsBuild *b, const char *at, LsTensor x, LsConv c)
{
    const char *in[3] = {x.name};
    int64_t stride = or_one(c.stride);
    int nin = weight_and_bias(b, at, b->conv, 4,
                              (int64_t[]){x.dim[1], c.out, c.kernel, c.kernel}, c.out, c.bias, in);
    LsTensor y = {.rank = 4, .dim = {x.dim[0], c.out,
                  (x.dim[2] - 1) * stride + c.kernel - 2 * c.pad,
                  (x.dim[3] - 1) * stride + c.kernel - 2 * c.pad}};
    y = ls_build_node(b, "ConvTranspose", at, nin, in, y);
    ls_build_ints_attr(b, "dilations", 2, (int64_t[]){1, 1});
    ls_build_int_attr(b, "group", 1);
    window_attrs(b, c.kernel, stride, c.pad);
    return y;
}

/* One vector of a normalisation: "at.what" of n elements. */
static const char *vector(LsBuild *b, const char *at, const char *what, int64_t n, LsFill fill,
                          bool statistic)
{
    const char *name = ls_build_name(b, "%s.%s", at, what);
    ls_build_weight(b, (LsWeight){name, 1, {n}, fill, 0, statistic});
    return name;
}

LsTensor ls_layer_batch_norm(LsBuild *b, const char *at, LsTensor x, float epsilon)
{
    int64_t c = x.dim[1];
    const char *in[] = {x.name, vector(b, at, "weight", c, LS_FILL_ONE, false),
                        vector(b, at, "bias", c, LS_FILL_ZERO, false),
                        vector(b, at, "running_mean", c, LS_FILL_ZERO, true),
                        vector(b, at, "running_var", c, LS_FILL_ONE, true)};
    x = ls_build_node(b, "BatchNormalization", at, 5, in, x);
    ls_build_extra_output(b, ls_build_name(b, "%s.next_running_mean", at));
    ls_build_extra_output(b, ls_build_name(b, "%s.next_running_var", at));
    ls_build_float_attr(b, "epsilon", epsilon);
    ls_build_float_attr(b, "momentum", 0.9f);
    ls_build_int_attr(b, "training_mode", 1);
    return x;
}

LsTensor ls_layer_layer_norm(LsBuild *b, const char *at, LsTensor x)
{
    int64_t d = x.dim[x.rank - 1];
    const char *in[] = {x.name, vector(b, at, "weight", d, LS_FILL_ONE, false),
                        vector(b, at, "bias", d, LS_FILL_ZERO, false)};
    x = ls_build_node(b, "LayerNormalization", at, 3, in, x);
    ls_build_int_attr(b, "axis", -1);
    ls_build_float_attr(b, "epsilon", 1e-5f);
    return x;
}

LsTensor ls_layer_unary(LsBuild *b, const char *op, const char *at, LsTensor x)
{
    return ls_build_node(b, op, at, 1, (const char *[]){x.name}, x);
}

LsTensor ls_layer_relu(LsBuild *b, const char *at, LsTensor x)
{
    return ls_layer_unary(b, "Relu", at, x);
}

/* A node with the operands x and a scalar. */
static LsTensor with_scalar(LsBuild *b, const char *op, const char *at, LsTensor x, float v)
{
    const char *in[] = {x.name, ls_build_scalar(b, v)};
    return ls_build_node(b, op, at, 2, in, x);
}

LsTensor ls_layer_gelu(LsBuild *b, const char *at, LsTensor x)
{
    LsTensor e = with_scalar(b, "Div", ls_build_name(b, "%s.div", at), x, 1.41421356237309505f);
    e = ls_layer_unary(b, "Erf", ls_build_name(b, "%s.erf", at), e);
    e = with_scalar(b, "Add", ls_build_name(b, "%s.add", at), e, 1);
    e = ls_build_node(b, "Mul", ls_build_name(b, "%s.mul", at), 2,
                      (const char *[]){x.name, e.name}, x);
    return with_scalar(b, "Mul", at, e, 0.5f);
}

LsTensor ls_layer_dropout(LsBuild *b, const char *at, LsTensor x)
{
    if (b->dropout <= 0)
        return x;
    const char *ratio = ls_build_scalar(b, (float)b->dropout);
    const char *in[] = {x.name, ratio, ls_build_true(b)};
    return ls_build_node(b, "Dropout", at, 3, in, x);
}

static LsTensor pool(LsBuild *b, const char *op, const char *at, LsTensor x, LsPool p)
{
    LsTensor y = x;
    for (int i = 2; i < 4; i++)
        y.dim[i] = windows(b, at, x.dim[i], p.kernel, p.stride, p.pad, p.ceil);
    y = ls_build_node(b, op, at, 1, (const char *[]){x.name}, y);
    ls_build_int_attr(b, "ceil_mode", p.ceil);
    window_attrs(b, p.kernel, p.stride, p.pad);
    return y;
}

LsTensor ls_layer_max_pool(LsBuild *b, const char *at, LsTensor x, LsPool p)
{
    return pool(b, "MaxPool", at, x, p);
}

LsTensor ls_layer_average_pool(LsBuild *b, const char *at, LsTensor x, LsPool p)
{
    return pool(b, "AveragePool", at, x, p);
}

LsTensor ls_layer_global_average_pool(LsBuild *b, const char *at, LsTensor x)
{
    LsTensor y = {.rank = 4, .dim = {x.dim[0], x.dim[1], 1, 1}};
    return ls_build_node(b, "GlobalAveragePool", at, 1, (const char *[]){x.name}, y);
}

LsTensor ls_layer_flatten(LsBuild *b, const char *at, LsTensor x)
{
    LsTensor y = {.rank = 2, .dim = {x.dim[0], 1}};
    for (int i = 1; i < x.rank; i++)
        y.dim[1] *= x.dim[i];
    y = ls_build_node(b, "Flatten", at, 1, (const char *[]){x.name}, y);
    ls_build_int_attr(b, "axis", 1);
    return y;
}

LsTensor ls_layer_linear(LsBuild *b, const char *at, LsTensor x, int64_t out)
{
    const char *in[3] = {x.name};
    weight_and_bias(b, at, b->linear, 2, (int64_t[]){out, x.dim[1]}, out, true, in);
    LsTensor y = {.rank = 2, .dim = {x.dim[0], out}};
    y = ls_build_node(b, "Gemm", at, 3, in, y);
    ls_build_float_attr(b, "alpha", 1);
    ls_build_float_attr(b, "beta", 1);
    ls_build_int_attr(b, "transB", 1);
    return y;
}

LsTensor ls_layer_add(LsBuild *b, const char *at, LsTensor x, LsTensor y)
{
    return ls_build_node(b, "Add", at, 2, (const char *[]){x.name, y.name}, x);
}

LsTensor ls_layer_concat(LsBuild *b, const char *at, int n, const LsTensor x[])
{
    const char **in = ls_arena_alloc(b->arena, (size_t)n, sizeof *in);
    LsTensor y = x[0];
    y.dim[1] = 0;
    for (int i = 0; i < n; i++) {
        in[i] = x[i].name;
        y.dim[1] += x[i].dim[1];
    }
    y = ls_build_node(b, "Concat", at, n, in, y);
    ls_build_int_attr(b, "axis", 1);
    return y;
}

LsTensor ls_layer_matmul(LsBuild *b, const char *at, LsTensor x, LsTensor y, LsTensor shape)
{
    return ls_build_node(b, "MatMul", at, 2, (const char *[]){x.name, y.name}, shape);
}

LsTensor ls_layer_softmax(LsBuild *b, const char *at, LsTensor x)
{
    x = ls_layer_unary(b, "Softmax", at, x);
    ls_build_int_attr(b, "axis", -1);
    return x;
}

LsTensor ls_layer_transpose(LsBuild *b, const char *at, LsTensor x, const int64_t perm[])
{
    LsTensor y = x;
    for (int i = 0; i < x.rank; i++)
        y.dim[i] = x.dim[perm[i]];
    y = ls_build_node(b, "Transpose", at, 1, (const char *[]){x.name}, y);
    ls_build_ints_attr(b, "perm", x.rank, perm);
    return y;
}

LsTensor ls_layer_reshape(LsBuild *b, const char *at, LsTensor x, LsTensor shape)
{
    int64_t to[LS_MODEL_RANK] = {0};    /* 0 copies x's dimension: the batch, symbolic or not */
    for (int i = 1; i < shape.rank; i++)
        to[i] = shape.dim[i];
    shape.dim[0] = x.dim[0];
    const char *in[] = {x.name, ls_build_ints(b, shape.rank, to)};
    return ls_build_node(b, "Reshape", at, 2, in, shape);
}

/* The least float factor for which floor(in * factor) is `out`, in readers that multiply in float
 * and in readers that multiply in double. */
static float scale_to(int64_t in, int64_t out)
{
    float s = (float)out / (float)in;
    while (floorf((float)in * s) < (float)out || floor((double)in * (double)s) < (double)out)
        s = nextafterf(s, INFINITY);
    return s;
}

/* Uses factors and not sizes: sizes would include the batch. With aligned corners the result
 * depends on the sizes only. */
LsTensor ls_layer_resize(LsBuild *b, const char *at, LsTensor x, int64_t h, int64_t w)
{
    float scale[] = {1, 1, scale_to(x.dim[2], h), scale_to(x.dim[3], w)};
    const char *in[] = {x.name, "", ls_build_floats(b, 4, scale)};
    x.dim[2] = h;
    x.dim[3] = w;
    x = ls_build_node(b, "Resize", at, 3, in, x);
    ls_build_string_attr(b, "coordinate_transformation_mode", "align_corners");
    ls_build_string_attr(b, "mode", "linear");
    return x;
}

LsTensor ls_layer_pad_to(LsBuild *b, const char *at, LsTensor x, LsTensor to)
{
    int64_t dh = to.dim[2] - x.dim[2], dw = to.dim[3] - x.dim[3];
    if (dh == 0 && dw == 0)
        return x;
    int64_t pads[] = {0, 0, dh / 2, dw / 2, 0, 0, dh - dh / 2, dw - dw / 2};
    const char *in[] = {x.name, ls_build_ints(b, 8, pads)};
    x.dim[2] = to.dim[2];
    x.dim[3] = to.dim[3];
    return ls_build_node(b, "Pad", at, 2, in, x);
}

LsTensor ls_layer_crop_to(LsBuild *b, const char *at, LsTensor x, LsTensor to)
{
    int64_t h = (x.dim[2] - to.dim[2]) / 2, w = (x.dim[3] - to.dim[3]) / 2;
    if (x.dim[2] == to.dim[2] && x.dim[3] == to.dim[3])
        return x;
    const char *starts = ls_build_ints(b, 2, (int64_t[]){h, w});
    const char *ends = ls_build_ints(b, 2, (int64_t[]){h + to.dim[2], w + to.dim[3]});
    const char *in[] = {x.name, starts, ends, ls_build_ints(b, 2, (int64_t[]){2, 3})};
    x.dim[2] = to.dim[2];
    x.dim[3] = to.dim[3];
    return ls_build_node(b, "Slice", at, 4, in, x);
}
