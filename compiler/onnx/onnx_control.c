/* compiler/onnx/onnx_control.c -- see the header. */
#include "compiler/onnx/onnx_control.h"

#include <inttypes.h>
#include <string.h>

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_attr.h"
#include "compiler/onnx/onnx_run_body.h"
#include "compiler/onnx/onnx_flex_attention.h"
#include "compiler/onnx/onnx_sequence.h"

static const char known_hint[] =
    "only constants and results of static shapes are known when the model is compiled";

typedef struct Control {
    LsImport *im;
    const LsOnnxFlat *f;
    LsOnnxNode n;               /* for attributes and messages */
    size_t operands, results;   /* as the file lists them */
    LsBody body;
} Control;

static LsOnnxValue value_at(const Control *c, size_t k)
{
    const char *name = k < c->operands ? ls_text(c->f->proto->input[k]) : "";
    return name[0] != '\0' ? c->im->value[ls_names_find(&c->im->m->names, name)] : (LsOnnxValue){0};
}

static bool known(const LsImport *im, LsValueId v)
{
    return ls_is_const(im->g, v) && im->g->value[v.i].data != NULL
        && ls_count(ls_shape(im->g, v)) == 1;
}

/* Operand k as a number; the default where it is left out. */
static bool number(Control *c, size_t k, const char *what, int64_t otherwise, int64_t *to)
{
    LsOnnxValue v = value_at(c, k);
    *to = otherwise;
    if (k >= c->operands || ls_text(c->f->proto->input[k])[0] == '\0')
        return true;
    if (!ls_is(v.v) || !known(c->im, v.v) || ls_type(c->im->g, v.v) == LS_REAL)
        return ls_onnx_error(&c->n, LS_E_NOT_CONST, known_hint,
                             "%s ('%s') must be known at compile time", what,
                             c->f->proto->input[k]);
    *to = ls_const_int_at(c->im->g, v.v, 0);
    return true;
}

static bool is_tensor(Control *c, const LsOnnxValue *v, const char *what, size_t k)
{
    return ls_is(v->v) || ls_onnx_error(&c->n, LS_E_TYPE, NULL, "%s %zu is no tensor", what, k);
}

/* The index-th part along the axis, without the axis. */
static LsValueId part(Control *c, LsValueId v, int axis, int64_t index)
{
    LsShape s = *ls_shape(c->im->g, v);
    v = ls_slice_axis(c->im->cx, c->im->g, v, axis, index, index + 1);
    s.rank--;
    for (int k = axis; k < s.rank; k++)
        s.dim[k] = s.dim[k + 1];
    return ls_is(v) ? ls_reshape(c->im->cx, c->im->g, v, &s) : v;
}

/* ---- results that are collected over the iterations ---- */

typedef struct Stack { LsValueId *item; uint32_t n, cap; } Stack;

static bool push(Control *c, Stack *s, const LsOnnxValue *v, size_t k)
{
    if (!is_tensor(c, v, "collected result", k))
        return false;
    s->item = ls_arena_grow(c->im->cx->arena, s->item, s->n, s->n + 1, sizeof *s->item, &s->cap);
    s->item[s->n++] = v->v;
    return true;
}

static bool stack(Control *c, const Stack *s, size_t k, int64_t axis, bool backwards,
                  LsOnnxValue *to)
{
    const char *name = k < c->results ? ls_text(c->f->proto->output[k]) : "";
    if (name[0] == '\0')
        return true;
    if (s->n == 0 && c->im->reads[ls_names_find(&c->im->m->names, name)] == 0)
        return true;
    if (s->n == 0)
        return ls_onnx_error(&c->n, LS_E_SHAPE, NULL, "no iteration makes an item of result %zu",
                             k);
    LsValueId *item = ls_arena_alloc(c->im->cx->arena, s->n, sizeof *item);
    for (uint32_t i = 0; i < s->n; i++)
        item[i] = s->item[backwards ? s->n - 1 - i : i];
    int at = ls_onnx_axis(&c->n, axis, ls_shape(c->im->g, item[0])->rank + 1);
    to->v = at < 0 ? (LsValueId){0} : ls_onnx_stack(c->im->cx, c->im->g, item, s->n, at);
    return ls_is(to->v);
}

static const char *run_name(const Control *c, int64_t i)
{
    return ls_arena_printf(c->im->cx->arena, "%s/%" PRId64, c->f->name, i);
}

/* ---- If ---- */

static bool choose(Control *c, LsOnnxValue to[])
{
    int64_t yes;
    LsOnnxValue v = value_at(c, 0);
    if (c->operands != 1)
        return ls_onnx_error(&c->n, LS_E_NAME, NULL, "it takes one condition");
    if (ls_is(v.v) && !known(c->im, v.v))
        return ls_onnx_error(
            &c->n, LS_E_NOT_CONST,
            "compute both branches and select by Where, or export the model with "
            "the branch decided",
            "the condition '%s' is computed at run time, but a program runs the same "
            "nodes in every step",
            c->f->proto->input[0]);
    if (!number(c, 0, "the condition", 0, &yes))
        return false;
    const char *branch = yes ? "then_branch" : "else_branch";
    if (!ls_body_open(&c->body, c->im, c->f, branch, 0, c->results))
        return false;
    LsArena *a = c->im->cx->arena;
    LsOnnxValue *out = ls_arena_alloc(a, c->body.g->n_output + 1, sizeof *out);
    if (!ls_body_run(&c->body, ls_arena_printf(a, "%s/%s", c->f->name, branch), NULL, out))
        return false;
    for (size_t k = 0; k < c->results; k++)
        to[k] = out[k];
    return true;
}

/* ---- Loop ---- */

/* state: first the carried values, then room for what an iteration gives beside them. */
static bool iterate(Control *c, int64_t most, bool going, size_t carried, LsOnnxValue state[],
                    Stack collected[])
{
    LsArena *a = c->im->cx->arena;
    size_t given = c->body.g->n_output;
    LsOnnxValue *in = ls_arena_alloc(a, carried + 2, sizeof *in);
    LsOnnxValue *out = ls_arena_alloc(a, given + 1, sizeof *out);
    for (int64_t i = 0; i < most && going; i++) {
        in[0].v = ls_const_int(c->im->cx, c->im->g, LS_I64, i);
        in[1].v = ls_const_int(c->im->cx, c->im->g, LS_BOOL, true);
        for (size_t k = 0; k < carried; k++)
            in[2 + k] = state[k];
        if (!ls_body_run(&c->body, run_name(c, i), in, out))
            return false;
        if (!ls_is(out[0].v) || !known(c->im, out[0].v))
            return ls_onnx_error(&c->n, LS_E_NOT_CONST, known_hint,
                                 "the condition after iteration %" PRId64
                                 " must be known at compile "
                                 "time: a program runs the same nodes in every step",
                                 i);
        going = ls_const_int_at(c->im->g, out[0].v, 0) != 0;
        for (size_t k = 0; k < carried; k++)
            state[k] = out[1 + k];
        for (size_t k = 1 + carried; k < given; k++)
            if (!push(c, &collected[k - 1 - carried], &out[k], k - 1))
                return false;
    }
    return true;
}

static bool loop(Control *c, LsOnnxValue to[])
{
    int64_t most, going;
    if (c->operands < 2)
        return ls_onnx_error(&c->n, LS_E_NAME, NULL, "it takes a number of iterations, a condition "
                             "and values");
    size_t carried = c->operands - 2;
    if (!ls_body_open(&c->body, c->im, c->f, "body", c->operands, 1 + carried)
        || !number(c, 0, "the number of iterations", INT64_MAX, &most)
        || !number(c, 1, "the condition", 1, &going))
        return false;
    size_t collected = c->body.g->n_output - 1 - carried;
    if (c->results > carried + collected)
        return ls_onnx_error(&c->n, LS_E_NAME, NULL, "it has %zu results, its body gives %zu",
                             c->results, carried + collected);
    LsOnnxValue *state = ls_arena_alloc(c->im->cx->arena, carried + 1, sizeof *state);
    Stack *list = ls_arena_alloc(c->im->cx->arena, collected + 1, sizeof *list);
    for (size_t k = 0; k < carried; k++)
        state[k] = value_at(c, 2 + k);
    if (!iterate(c, most, going != 0, carried, state, list))
        return false;
    bool good = true;
    for (size_t k = 0; k < carried && k < c->results; k++)
        to[k] = state[k];
    for (size_t k = 0; k < collected && carried + k < c->results; k++)
        good &= stack(c, &list[k], carried + k, 0, false, &to[carried + k]);
    return good;
}

/* ---- Scan ---- */

typedef struct Scan {
    size_t carried, scanned, collected;
    int64_t *in_axis, *in_back, *out_axis, *out_back;   /* by scanned operand, collected result */
    LsOnnxValue *state, *in, *out;
    Stack *list;
} Scan;

/* The attribute's list of that many integers, or zeros; NULL after an error. */
static int64_t *integers(Control *c, const char *name, size_t n)
{
    int64_t *v = ls_arena_alloc(c->im->cx->arena, n + 1, sizeof *v);
    if (!ls_onnx_has(&c->n, name))
        return v;
    int have = ls_onnx_ints(&c->n, name, (int)n, v);
    if (have >= 0 && (size_t)have != n)
        ls_onnx_error(&c->n, LS_E_ATTR, NULL, "%s has %d numbers, it needs %zu", name, have, n);
    return have >= 0 && (size_t)have == n ? v : NULL;
}

/* first: the operand behind sequence_lens, which opset 8 has. */
static bool open_scan(Control *c, Scan *s, size_t first)
{
    LsArena *a = c->im->cx->arena;
    int64_t scanned = ls_onnx_int(&c->n, "num_scan_inputs", 0);
    size_t operands = c->operands - first;
    if (scanned < 1 || (size_t)scanned > operands)
        return ls_onnx_error(&c->n, LS_E_ATTR, NULL,
                             "num_scan_inputs is %" PRId64 " of %zu operands", scanned, operands);
    *s = (Scan){.carried = operands - (size_t)scanned, .scanned = (size_t)scanned};
    if (!ls_body_open(&c->body, c->im, c->f, "body", operands, s->carried))
        return false;
    s->collected = c->body.g->n_output - s->carried;
    if (c->results > s->carried + s->collected)
        return ls_onnx_error(&c->n, LS_E_NAME, NULL, "it has %zu results, its body gives %zu",
                             c->results, s->carried + s->collected);
    s->in = ls_arena_alloc(a, operands + 1, sizeof *s->in);
    s->out = ls_arena_alloc(a, c->body.g->n_output + 1, sizeof *s->out);
    bool old = c->f->version < 9;
    s->in_axis = integers(c, "scan_input_axes", s->scanned);
    s->in_back = integers(c, old ? "directions" : "scan_input_directions", s->scanned);
    s->out_axis = integers(c, "scan_output_axes", s->collected);
    s->out_back = integers(c, "scan_output_directions", s->collected);
    return s->in_axis != NULL && s->in_back != NULL && s->out_axis != NULL && s->out_back != NULL;
}

/* Makes the axes of scanned operands non-negative; their common length, -1 after an error. */
static int64_t scan_length(Control *c, Scan *s, const LsOnnxValue in[])
{
    int64_t length = -1;
    for (size_t k = 0; k < s->scanned; k++) {
        if (!is_tensor(c, &in[k], "scanned operand", k))
            return -1;
        const LsShape x = *ls_shape(c->im->g, in[k].v);
        int axis = ls_onnx_axis(&c->n, s->in_axis[k], x.rank);
        if (axis < 0)
            return -1;
        if (length >= 0 && x.dim[axis] != length)
            return ls_onnx_error(&c->n, LS_E_SHAPE, NULL, "scanned operand %zu has %" PRId64
                                 " parts, the ones before it have %" PRId64, k, x.dim[axis],
                                 length) - 1;
        s->in_axis[k] = axis;
        length = x.dim[axis];
    }
    return length;
}

/* Runs the body for each part; state holds the carried values, and the last ones after it. */
static bool scan(Control *c, Scan *s, const char *prefix, const LsOnnxValue in[],
                 LsOnnxValue state[], Stack list[])
{
    int64_t length = scan_length(c, s, in);
    for (int64_t i = 0; i < length; i++) {
        for (size_t k = 0; k < s->carried; k++)
            s->in[k] = state[k];
        for (size_t k = 0; k < s->scanned; k++)
            s->in[s->carried + k] = (LsOnnxValue){
                .v = part(c, in[k].v, (int)s->in_axis[k], s->in_back[k] != 0 ? length - 1 - i : i)};
        const char *name = ls_arena_printf(c->im->cx->arena, "%s/%" PRId64, prefix, i);
        if (!ls_body_run(&c->body, name, s->in, s->out))
            return false;
        for (size_t k = 0; k < s->carried; k++)
            state[k] = s->out[k];
        for (size_t k = 0; k < s->collected; k++)
            if (!push(c, &list[k], &s->out[s->carried + k], s->carried + k))
                return false;
    }
    return length >= 0;
}

static bool scan_9(Control *c, LsOnnxValue to[])
{
    Scan s;
    if (!open_scan(c, &s, 0))
        return false;
    LsArena *a = c->im->cx->arena;
    LsOnnxValue *state = ls_arena_alloc(a, c->operands + 1, sizeof *state);
    Stack *list = ls_arena_alloc(a, s.collected + 1, sizeof *list);
    for (size_t k = 0; k < c->operands; k++)
        state[k] = value_at(c, k);
    if (!scan(c, &s, c->f->name, state + s.carried, state, list))
        return false;
    bool good = true;
    for (size_t k = 0; k < s.carried && k < c->results; k++)
        to[k] = state[k];
    for (size_t k = 0; k < s.collected && s.carried + k < c->results; k++)
        good &= stack(c, &list[k], s.carried + k, s.out_axis[k], s.out_back[k] != 0,
                      &to[s.carried + k]);
    return good;
}

/* Opset 8: all operands and results begin with a batch axis, and samples are scanned alone. */
static bool scan_8(Control *c, LsOnnxValue to[])
{
    Scan s;
    if (c->operands < 2 || ls_text(c->f->proto->input[0])[0] != '\0')
        return ls_onnx_error(&c->n, LS_E_UNSUPPORTED, "convert the model to opset 9 or later",
                             "sequence_lens is not handled");
    if (!open_scan(c, &s, 1))
        return false;
    LsArena *a = c->im->cx->arena;
    size_t operands = c->operands - 1, given = s.carried + s.collected;
    LsOnnxValue *sample = ls_arena_alloc(a, operands + 1, sizeof *sample);
    Stack *all = ls_arena_alloc(a, given + 1, sizeof *all);
    int64_t batch = -1;
    for (size_t k = 0; k < operands; k++) {
        LsOnnxValue v = value_at(c, k + 1);
        if (!is_tensor(c, &v, "operand", k + 1))
            return false;
        const LsShape *x = ls_shape(c->im->g, v.v);
        if (x->rank == 0 || (batch >= 0 && x->dim[0] != batch))
            return ls_onnx_error(&c->n, LS_E_SHAPE, NULL, "operand %zu has another batch axis",
                                 k + 1);
        batch = x->dim[0];
    }
    for (int64_t b = 0; b < batch; b++) {
        Stack *list = ls_arena_alloc(a, s.collected + 1, sizeof *list);
        for (size_t k = 0; k < operands; k++)
            sample[k].v = part(c, value_at(c, k + 1).v, 0, b);
        if (!scan(c, &s, run_name(c, b), sample + s.carried, sample, list))
            return false;
        for (size_t k = 0; k < given; k++) {
            LsOnnxValue v = k < s.carried ? sample[k] : (LsOnnxValue){0};
            if ((k >= s.carried && !stack(c, &list[k - s.carried], k, 0, false, &v))
                || (k < c->results && !push(c, &all[k], &v, k)))
                return false;
        }
    }
    bool good = true;
    for (size_t k = 0; k < given && k < c->results; k++)
        good &= stack(c, &all[k], k, 0, false, &to[k]);
    return good;
}

/* ---- SequenceMap ---- */

static bool map(Control *c, LsOnnxValue to[])
{
    LsArena *a = c->im->cx->arena;
    LsOnnxValue first = value_at(c, 0);
    if (first.list == NULL)
        return ls_onnx_error(&c->n, LS_E_TYPE, NULL, "operand 0 is no sequence");
    if (!ls_body_open(&c->body, c->im, c->f, "body", c->operands, c->results))
        return false;
    LsOnnxValue *in = ls_arena_alloc(a, c->operands, sizeof *in);
    LsOnnxValue *out = ls_arena_alloc(a, c->body.g->n_output + 1, sizeof *out);
    LsSequence **list = ls_arena_alloc(a, c->results + 1, sizeof *list);
    for (size_t k = 0; k < c->results; k++)
        to[k].list = list[k] = ls_sequence_new(c->im, first.list->n);
    for (uint32_t i = 0; i < first.list->n; i++) {
        for (size_t k = 0; k < c->operands; k++) {
            LsOnnxValue v = value_at(c, k);
            if (v.list != NULL && v.list->n != first.list->n)
                return ls_onnx_error(&c->n, LS_E_SHAPE, NULL, "operand %zu has %u items, operand 0 "
                                     "has %u", k, v.list->n, first.list->n);
            in[k] = v.list != NULL ? (LsOnnxValue){.v = v.list->item[i]} : v;
        }
        if (!ls_body_run(&c->body, run_name(c, i), in, out))
            return false;
        for (size_t k = 0; k < c->results; k++) {
            if (!is_tensor(c, &out[k], "result", k))
                return false;
            list[k]->item[list[k]->n++] = out[k].v;
        }
    }
    return true;
}

/* ---- FlexAttention ---- */

static bool flex(Control *c, LsOnnxValue to[])
{
    LsValueId in[3];
    if (c->operands != 3 || c->results != 1)
        return ls_onnx_error(&c->n, LS_E_NAME, NULL, "it takes Q, K and V and gives Y");
    for (size_t k = 0; k < 3; k++) {
        LsOnnxValue v = value_at(c, k);
        if (!is_tensor(c, &v, "operand", k))
            return false;
        in[k] = v.v;
    }
    return ls_onnx_flex(&c->n, c->f, in, to);
}

bool ls_onnx_control(LsImport *im, const LsOnnxFlat *f, LsOnnxValue to[])
{
    Control c = {.im = im,
                 .f = f,
                 .operands = f->proto->n_input - f->ncaptured,
                 .results = f->proto->n_output};
    c.n = (LsOnnxNode){.cx = im->cx, .g = im->g, .op = ls_text(f->proto->op_type), .domain = "",
                       .name = f->name, .version = f->version, .proto = f->proto, .import = im};
    if (ls_flat_is(f, "If"))
        return choose(&c, to);
    if (ls_flat_is(f, "Loop"))
        return loop(&c, to);
    if (ls_flat_is(f, "SequenceMap"))
        return map(&c, to);
    if (strcmp(c.n.op, "FlexAttention") == 0)
        return flex(&c, to);
    return f->version < 9 ? scan_8(&c, to) : scan_9(&c, to);
}
