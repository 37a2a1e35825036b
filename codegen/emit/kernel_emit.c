/* codegen/emit/kernel_emit.c -- the table of emitters and their shared helpers. */
#include "codegen/emit/kernel_emit.h"

#include "compiler/passes/fuse.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const LsEmitter ls_emitter_fused, ls_emitter_update, ls_emitter_move, ls_emitter_gather,
    ls_emitter_resize, ls_emitter_pool, ls_emitter_softmax, ls_emitter_norm, ls_emitter_loss,
    ls_emitter_matmul, ls_emitter_conv, ls_emitter_attention, ls_emitter_matmul_cuda,
    ls_emitter_conv_cuda, ls_emitter_attention_cuda, ls_emitter_scan, ls_emitter_sample,
    ls_emitter_unpack, ls_emitter_sum_end;

static const LsEmitter *const cpu_emitter[LS_NKERNELS] = {
    [LS_K_FUSED] = &ls_emitter_fused,     [LS_K_UPDATE] = &ls_emitter_update,
    [LS_K_MOVE] = &ls_emitter_move,       [LS_K_GATHER] = &ls_emitter_gather,
    [LS_K_RESIZE] = &ls_emitter_resize,   [LS_K_POOL] = &ls_emitter_pool,
    [LS_K_SOFTMAX] = &ls_emitter_softmax, [LS_K_NORM] = &ls_emitter_norm,
    [LS_K_LOSS] = &ls_emitter_loss,       [LS_K_MATMUL] = &ls_emitter_matmul,
    [LS_K_CONV] = &ls_emitter_conv,       [LS_K_ATTENTION] = &ls_emitter_attention,
    [LS_K_SCAN] = &ls_emitter_scan,       [LS_K_SAMPLE] = &ls_emitter_sample,
    [LS_K_UNPACK] = &ls_emitter_unpack,   [LS_K_SUM_END] = &ls_emitter_sum_end,
};

/* Kernels that differ on GPUs, or that a library computes; all others use the CPU's text. */
static const LsEmitter *const cuda_emitter[LS_NKERNELS] = {
    [LS_K_MATMUL] = &ls_emitter_matmul_cuda, [LS_K_CONV] = &ls_emitter_conv_cuda,
    [LS_K_ATTENTION] = &ls_emitter_attention_cuda,
};

const LsEmitter *ls_emitter_of(LsTargetKind target, LsKernelId id)
{
    bool other = target == LS_TARGET_CUDA && cuda_emitter[id] != NULL;
    return other ? cuda_emitter[id] : cpu_emitter[id];
}

/* Operands (bit k: operand k) whose elements the kernel reads before it writes the same element of
 * result 0. Kernels over rows read a row for its sums first, and a row belongs to one unit. The
 * kernel of gather_grad checks whether its base is in place. */
static unsigned inplace_operands(LsOpCode op)
{
    switch (op) {
    case LS_OP_SOFTMAX: case LS_OP_LOG_SOFTMAX: case LS_OP_LAYER_NORM: case LS_OP_ACCUMULATE:
        return 1;
    case LS_OP_LAMB: case LS_OP_MUON: case LS_OP_DIRECTION: case LS_OP_BLEND:
    case LS_OP_RAW_ADAM:
        return 2;
    case LS_OP_SOFTMAX_GRAD: case LS_OP_LOG_SOFTMAX_GRAD:
        return 1 | 2;
    case LS_OP_LAYER_NORM_GRAD: return 1 | 2 | 32;
    case LS_OP_XENT_GRAD:       return 2;
    case LS_OP_REGRESSION_GRAD: return 2 | 4;
    case LS_OP_GATHER_GRAD: case LS_OP_SCATTER: case LS_OP_SCATTER_EACH: case LS_OP_MATMUL_PART:
    case LS_OP_CONV_DW_PART:
        return 4;
    case LS_OP_XENT_PART:       return 16;
    case LS_OP_PLACE: return 2;
    default:                    return 0;
    }
}

bool ls_kernel_inplace(const LsGraph *g, LsNodeId n, int out, int in)
{
    const LsNode *node = &g->node[n.i];
    const LsValue *x = &g->value[ls_in(g, n, in).i], *y = &g->value[ls_out(g, n, out).i];
    if (!ls_shape_same(&x->shape, &y->shape) || x->layout != y->layout || x->type != y->type)
        return false;
    if (node->op == LS_OP_ACCUMULATE && node->attr.update.stays)
        return false;
    if (node->op == LS_OP_FUSED && node->attr.fused.body->states > 0
        && node->attr.fused.body->out[out].reduce)
        return in == ls_state_operand(node->attr.fused.body, out);
    if (node->op == LS_OP_FUSED)        /* an inset operand is read at other points, too */
        return ls_is_stored(&node->attr.fused.body->out[out])
            && ls_inset_of(node->attr.fused.body, in) == NULL;
    return out == 0 && in < 8 && inplace_operands((LsOpCode)node->op) >> in & 1;
}

const char *ls_ctype(LsType t)
{
    static const char *const name[LS_NTYPES] = {"real",    "int64_t", "int32_t",
                                                "uint8_t", "ls_bf16", "ls_f16", "uint8_t"};
    return name[t];
}

const char *ls_register_type(LsType t) { return ls_ctype(ls_is_float(t) ? LS_REAL : t); }

static const char *called(struct LsArena *a, LsType t, const char *bf16, const char *f16,
                          const char *x)
{
    return ls_is_16(t) ? ls_arena_printf(a, "%s(%s)", t == LS_BF16 ? bf16 : f16, x) : x;
}

const char *ls_widened(struct LsArena *a, LsType t, const char *x)
{
    return called(a, t, "ls_from_bf16", "ls_from_f16", x);
}

const char *ls_narrowed(struct LsArena *a, LsType t, const char *v)
{
    return called(a, t, "ls_to_bf16", "ls_to_f16", v);
}

const char *ls_rounded(struct LsArena *a, LsType t, const char *v)
{
    return called(a, t, "ls_round_brain", "ls_round_half", v);
}

const char *ls_stored(struct LsArena *a, LsType t, const char *v)
{
    return ls_narrowed(a, t, ls_rounded(a, t, v));
}

/* The fewest digits that round-trip. */
static const char *real_text(struct LsArena *a, double v, int real_bytes)
{
    char text[40];
    if (isnan(v) || isinf(v))
        return isnan(v) ? "NAN" : v > 0 ? "INFINITY" : "-INFINITY";
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v || (real_bytes == 4 && strtof(text, NULL) == (float)v))
            break;
    }
    return ls_arena_printf(a, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

const char *ls_literal(struct LsArena *a, LsType t, double v, int64_t i, int real_bytes)
{
    if (ls_is_float(t))
        return ls_stored(a, t, ls_arena_printf(a, "LS_R(%s)", real_text(a, v, real_bytes)));
    if (t == LS_I64 && i == INT64_MIN)
        return "INT64_MIN";
    return ls_arena_printf(a, t == LS_I64 ? "INT64_C(%" PRId64 ")" : "(%" PRId64 ")", i);
}

void ls_emit_operand(const LsKernelText *k, const char *var, int in)
{
    ls_emit_line(k->e, "LS_IN(%s, %s, " LS_N ");", ls_ctype(ls_operand_type(k, in)), var, in);
}

void ls_emit_result(const LsKernelText *k, const char *var, int out)
{
    ls_emit_line(k->e, "LS_OUT(%s, %s, " LS_N ");", ls_ctype(ls_result_type(k, out)), var,
                 k->g->node[k->n.i].nin + out);
}

void ls_emit_workspace(const LsKernelText *k, const char *type, const char *var)
{
    const LsNode *n = &k->g->node[k->n.i];
    ls_emit_line(k->e, "LS_OUT(%s, %s, " LS_N ");", type, var, n->nin + n->nout);
}

/* ---- parts and launches ---- */
static int argument_count(const LsKernelText *k)
{
    const LsNode *n = &k->g->node[k->n.i];
    return n->nin + n->nout + 1;        /* 1: room for a workspace */
}

void ls_emit_part(const LsKernelText *k, const LsGrid *part) { ls_emit_part_together(k, part, 0); }

void ls_emit_part_together(const LsKernelText *k, const LsGrid *part, int blocks)
{
    const char *together = blocks > 0 ? ls_arena_printf(k->g->arena, ", %d", blocks) : "";
    ls_emit_line(k->e, "LS_PART(%s_%s, " LS_HEAD ", " LS_WIDTH ", %d%s)", k->name, part->suffix,
                 argument_count(k),
                 part->x, part->y, together);
    ls_emit_line(k->e, "{");
    ls_emit_line(k->e, "LS_UNITS;");
}

void ls_emit_launch_state(const LsKernelText *k, const LsGrid *part, int state)
{
    const int out = k->g->node[k->n.i].nin;
    const int64_t bytes = ls_count(ls_shape(k->g, ls_out(k->g, k->n, 0))) * (int64_t)sizeof(double);
    ls_emit_line(k->e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->e, "{");
    if (state >= 0) {
        ls_emit_line(k->e, "if (arg[%d] != arg[%d])", state, out);
        ls_emit_line(k->e, "    memcpy(arg[%d], arg[%d], %" PRId64 ");", out, state, bytes);
    }
    ls_emit_line(k->e, "ls_parallel(run, %s_%s, %" PRId64 ", arg);", k->name, part->suffix,
                 part->units);
    ls_emit_line(k->e, "}");
}

/* units: an expression; NULL: those of each part. */
static void emit_function(const LsKernelText *k, const LsGrid part[], int npart, const char *units)
{
    LsEmit *e = k->host;
    const char *call =
        k->target->kind == LS_TARGET_CPU ? "ls_parallel(run, " : "ls_cuda_launch(run, p_";
    ls_emit_line(e, "static void %s(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(e, "{");
    for (int i = 0; i < npart; i++)
        ls_emit_line(e, "%s%s_%s, %s, arg);", call, k->name, part[i].suffix,
                     units != NULL ? units
                                   : ls_arena_printf(k->g->arena, "%" PRId64, part[i].units));
    ls_emit_line(e, "}");
    for (int i = 0; i < npart && k->table != NULL; i++)
        ls_emit_line(k->table, "LS_ROW(%s_%s, %d, %d, %d)", k->name, part[i].suffix,
                     argument_count(k), part[i].x, part[i].y);
}

void ls_emit_launch(const LsKernelText *k, const LsGrid part[], int npart)
{
    emit_function(k, part, npart, NULL);
}

void ls_emit_launch_units(const LsKernelText *k, const LsGrid *part, const char *units)
{
    emit_function(k, part, 1, units);
}
