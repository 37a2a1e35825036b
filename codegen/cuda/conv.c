/* codegen/cuda/conv.c -- CONV, CONV_DX, CONV_DW on NVIDIA GPUs: cuDNN's plan as a table of
 * constants, and one call (runtime/cuda/ls_cudnn.h); a generated kernel if no engine serves. */
#include "codegen/cuda/epilogue_fallback.h"
#include "codegen/cuda/generated_conv.h"
#include "codegen/cuda/conv_plan.h"
#include "codegen/cuda/conv_weights.h"

#include <inttypes.h>
#include <string.h>

static LsConvChoice choice_of(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    if (t->convs != NULL)
        return *ls_conv_choose(t->convs, g, n, t->real_bytes);
    LsConvChoice c;
    ls_conv_estimate(g, n, t->real_bytes, &(LsConvWishes){.rules = {.tf32 = t->tf32}}, &c);
    return c;
}

static int64_t conv_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    return ls_conv_room(choice_of(g, n, t).workspace);
}

static LsCostWay conv_way(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    const LsWindowAttr *at = &g->node[n.i].attr.window;
    const LsShape *w = g->node[n.i].op == LS_OP_CONV_DW ? ls_shape(g, ls_out(g, n, 0))
                                                         : ls_in_shape(g, n, 1);
    (void)t;
    return at->group > 1 && w->dim[1] == 1 ? LS_WAY_DEPTHWISE : LS_WAY_DIRECT;
}

/* ---- text ---- */
static void print_list(LsEmit *e, const char *name, const int64_t *v, int n)
{
    char text[160] = "";
    for (int k = 0, at = 0; k < n; k++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64, k > 0 ? ", " : "", v[k]);
    ls_emit_line(e, ".%s = {%s},", name, text);
}

/* Prints cuDNN's text as string literals, one a line. The text may contain the placeholder of the
 * kernel's name in compared texts (kernel_set.c), as a word of cuDNN's: literals end within that
 * word. */
static void print_plan(LsEmit *e, const char *json)
{
    enum { WIDTH = 72 };
    char line[2 * WIDTH + 1];
    ls_emit_line(e, ".plan =");
    while (*json != '\0') {
        int at = 0;
        for (int n = 0; n < WIDTH && *json != '\0'; n++, json++) {
            if (strncmp(json, "NEL", 3) == 0 && n > 0)
                break;
            if (*json == '"' || *json == '\\')
                line[at++] = '\\';
            line[at++] = *json;
        }
        line[at] = '\0';
        ls_emit_line(e, "    \"%s\"%s", line, *json == '\0' ? "," : "");
    }
}

static void print_conv(LsEmit *e, const char *name, const LsDnnConv *c)
{
    static const char *const kind[] = {"LS_DNN_CONV_FORWARD", "LS_DNN_CONV_DATA",
                                       "LS_DNN_CONV_WEIGHTS"};
    ls_emit_line(e, "static const LsCudaConv %s_conv = {", name);
    ls_emit_line(e, ".conv = {");
    ls_emit_line(e, ".kind = %s, .axes = %d, .real_bytes = %d, .bias = %d, .relu = %d, .mask = %d,",
                 kind[c->kind], c->axes, c->real_bytes, c->bias, c->relu, c->mask);
    if (c->brain)
        ls_emit_line(e, ".brain = true,");
    print_list(e, "x", c->x, 2 + c->axes);
    print_list(e, "w", c->w, 2 + c->axes);
    print_list(e, "y", c->y, 2 + c->axes);
    print_list(e, "stride", c->stride, c->axes);
    print_list(e, "dilation", c->dilation, c->axes);
    print_list(e, "pad_lo", c->pad_lo, c->axes);
    print_list(e, "pad_hi", c->pad_hi, c->axes);
    ls_emit_line(e, "},");
}

/* Whether a generated kernel may be faster, and needs no more workspace than the plan. */
static bool has_rival(const LsKernelText *k, const LsConvChoice *c)
{
    return ls_conv_weights_serves(k->g, k->n, k->target)
        && ls_emitter_conv_weights.workspace(k->g, k->n, k->target) <= ls_conv_room(c->workspace);
}

/* Prints the table of a convolution that cuDNN computes. */
static void print_table(const LsKernelText *k, const LsConvChoice *c, bool rival)
{
    const LsNode *node = &k->g->node[k->n.i];
    /* operands of CONV: x w; of CONV_DX: y w; of CONV_DW: y x */
    int x = node->op == LS_OP_CONV ? 0 : node->op == LS_OP_CONV_DX ? node->nin : 1;
    int w = node->op == LS_OP_CONV_DW ? node->nin : 1;
    int y = node->op == LS_OP_CONV ? node->nin : 0;
    LsDnnRules rules = {.tf32 = k->target->tf32};
    if (k->target->convs != NULL)
        rules = ls_conv_planner_wishes(k->target->convs)->rules;
    LsEmit *e = k->host;
    print_conv(e, k->name, &c->conv);
    ls_emit_line(e, ".rules = {.tf32 = %d, .nondeterministic = %d, .compiled = %d},", rules.tf32,
                 rules.nondeterministic, c->compiled);
    ls_emit_line(e, ".arg_x = %d, .arg_w = %d, .arg_y = %d, .arg_bias = %d, .arg_mask = %d,", x, w,
                 y, c->conv.bias ? 2 : -1, c->conv.mask ? LS_CONV_MASK : -1);
    ls_emit_line(e, ".arg_workspace = %d, .workspace = %" PRId64 ",",
                 c->workspace > 0 ? node->nin + 1 : -1, ls_conv_room(c->workspace));
    if (ls_dnn_has_epilogue(&c->conv))
        ls_emit_line(e, ".alone = %d, .behind = %s_behind,", c->alone, k->name);
    if (rival)
        ls_emit_line(e, ".own = %s_own,", k->name);
    if (c->json != NULL)
        print_plan(e, c->json);
    ls_emit_line(e, "};");
}

/* Prints NAME_own, the kernel that --tune compares with cuDNN. */
static void print_rival(const LsKernelText *k)
{
    char name[80];
    LsKernelText own = *k;
    snprintf(name, sizeof name, "%s_own", k->name);
    own.name = name;
    ls_emitter_conv_weights.emit(&own);
}

/* Prints NAME_behind: the epilogue, in place, for when the library computes the convolution
 * alone. */
static void print_behind(const LsKernelText *k, bool bias, bool relu, bool mask)
{
    const LsNode *node = &k->g->node[k->n.i];
    const LsShape *all = ls_shape(k->g, ls_out(k->g, k->n, 0));
    LsShape channels = {.rank = all->rank - 1, .dim = {all->dim[1]}};
    for (int d = 1; d < channels.rank; d++)
        channels.dim[d] = 1;
    LsBehind b = {.type = ls_result_type(k, 0), .body = {.space = *all, .layout = LS_LAST}};
    int y = ls_behind_operand(&b, node->nin, all);
    int with = bias ? ls_behind_operand(&b, 2, &channels) : 0;
    int of = mask ? ls_behind_operand(&b, LS_CONV_MASK, all) : 0;
    y = bias ? ls_behind_state(&b, LS_OP_ADD, y, with) : y;
    y = relu ? ls_behind_state(&b, LS_OP_RELU, y, 0) : y;
    y = mask ? ls_behind_state(&b, LS_OP_RELU_GRAD, y, of) : y;
    ls_behind_result(&b, node->nin, all, (LsFusedOut){.stmt = y});
    ls_behind_emit(&b, k, "cuDNN");
}

/* Prints a generated kernel, whose sums begin with the bias. */
static void print_own(const LsKernelText *k, bool mask)
{
    char name[80];
    LsKernelText own = *k;
    snprintf(name, sizeof name, "%s_own", k->name);
    own.name = mask ? name : k->name;
    const LsGrid part = ls_conv_own_part(&own);
    ls_emit_launch(&own, &part, 1);
    if (!mask)
        return;
    print_behind(k, false, false, true);
    ls_emit_line(k->host, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->host, "{");
    ls_emit_line(k->host, "%s(run, arg);", name);
    ls_emit_line(k->host, "%s_behind(run, arg);", k->name);
    ls_emit_line(k->host, "}");
}

static void conv_emit(const LsKernelText *k)
{
    const LsConvChoice c = choice_of(k->g, k->n, k->target);
    bool bias = c.conv.bias || c.bias_apart;
    LsEmit *e = k->host;
    if (c.own) {
        print_own(k, c.conv.mask);
        return;
    }
    if (bias || c.conv.relu || c.conv.mask)
        print_behind(k, bias, c.conv.relu, c.conv.mask);
    const bool rival = has_rival(k, &c);
    if (rival)
        print_rival(k);
    print_table(k, &c, rival);
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    ls_emit_line(e, "ls_cuda_conv(run, &%s_conv, arg);", k->name);
    if (c.bias_apart)
        ls_emit_line(e, "%s_behind(run, arg);", k->name);
    ls_emit_line(e, "}");
}

const LsEmitter ls_emitter_conv_cuda = {
    .emit = conv_emit, .workspace = conv_workspace, .way = conv_way};
