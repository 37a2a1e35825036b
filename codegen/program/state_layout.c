/* codegen/program/state_layout.c -- see state_layout.h. State is one block: parameters, then
 * other state, each aligned. */
#include "codegen/program/state_layout.h"

#include "codegen/planning/plan_problem.h"

#include <string.h>

LsTensor ls_address_tensor(const LsGraph *g, LsValueId v, LsAddress at)
{
    const LsValue *x = &g->value[v.i];
    LsTensor t = {.name = x->name, .type = (LsDataType)x->type, .rank = x->shape.rank, .at = at,
                  .channels_last = x->layout == LS_LAST && !ls_layout_free(&x->shape)};
    memcpy(t.dim, x->shape.dim, sizeof t.dim);
    t.members = x->stacked ? g->ensemble.members : 0;
    return t;
}

static LsOnnxSlot slot_of(const LsAddresses *a, const char *name)
{
    for (uint32_t k = 0; a->form != NULL && k < a->form->nslot; k++)
        if (strcmp(a->form->slot[k].name, name) == 0)
            return a->form->slot[k];
    return (LsOnnxSlot){.offset = -1};
}

int64_t ls_onnx_offset(const LsAddresses *a, const char *name)
{
    return slot_of(a, name).offset;
}

/* The name under which the file has the initial value of v. */
static const char *name_in_file(const LsValue *v)
{
    return v->average_of != NULL ? v->average_of : v->name;
}

/* Some node of the graph, or of its updates, writes the value. */
static bool is_written(const LsGraph *g, const LsValue *x)
{
    const LsValueId twin =
        g->rank.updates != NULL ? ls_source_named(g->rank.updates, x->name) : (LsValueId){0};
    return x->once_written || (ls_is(twin) && g->rank.updates->value[twin.i].once_written);
}

void ls_address_state_at(LsAddresses *a, const LsGraph *g, LsValueId v, LsAddress at)
{
    const LsValue *x = &g->value[v.i];
    const LsOnnxSlot from = slot_of(a, name_in_file(x));
    LsStateSlot s = {g, v, {.t = ls_address_tensor(g, v, at), .onnx_offset = from.offset},
                      from.further};
    s.row.kind = x->kind == LS_V_PARAM                  ? LS_STATE_PARAM
        : x->average_of != NULL                         ? LS_STATE_AVERAGE
        : x->statistic                                  ? LS_STATE_STAT
        : x->of_update                                  ? LS_STATE_SUM
        : !is_written(g, x)                             ? LS_STATE_FROZEN
        : s.row.onnx_offset >= 0                        ? LS_STATE_STAT
                                                        : LS_STATE_MOMENT;
    a->state = ls_arena_grow(a->cx->arena, a->state, a->nstate, a->nstate + 1, sizeof *a->state,
                             &a->cap_state);
    a->state[a->nstate++] = s;
}

/* Whether kernels can read the value where the file has it: codes, and large reals in the file's
 * order, that nothing writes. */
static bool stays_in_file(const LsAddresses *a, const LsGraph *g, const LsValue *x)
{
    enum { LARGE = 1 << 16, LINE = 64 };
    const int64_t at = a->maps ? ls_onnx_offset(a, x->name) : -1;
    if (at < 0 || x->kind != LS_V_STATE || x->statistic || x->stacked || x->average_of != NULL
        || x->of_update || x->rows_behind > 0 || is_written(g, x)
        || (at + a->form->shift) % LINE != 0)
        return false;
    return x->packed != NULL
           || (x->type == LS_REAL && a->real_bytes == 4 && 4 * ls_count(&x->shape) >= LARGE
               && (x->layout == LS_ROW || ls_layout_free(&x->shape)));
}

void ls_address_state(LsAddresses *a, const LsGraph *g, LsValueId v)
{
    for (uint32_t k = 0; k < a->nstate && g != a->train; k++)
        if (strcmp(a->state[k].row.t.name, g->value[v.i].name) == 0)
            return;
    const LsValue *x = &g->value[v.i];
    if (stays_in_file(a, g, x)) {
        ls_address_state_at(a, g, v, (LsAddress){LS_AT_FILE, ls_onnx_offset(a, x->name)});
        a->mapped_bytes += ls_value_bytes(g, v, a->real_bytes);
        return;
    }
    ls_address_state_at(a, g, v, (LsAddress){LS_AT_STATE, a->state_bytes});
    a->state_bytes += ls_align(ls_stored_bytes(g, v, a->real_bytes), LS_ALIGNMENT);
}

LsAddresses *ls_addresses_new(LsCtx *cx, const LsGraph *train, int real_bytes,
                              const LsOnnxForm *form, bool maps)
{
    LsAddresses *a = ls_arena_alloc(cx->arena, 1, sizeof *a);
    a->cx = cx;
    a->real_bytes = real_bytes;
    a->train = train;
    a->form = form;
    a->maps = maps;
    for (uint32_t i = 1; i < train->nvalue; i++)
        if (train->value[i].kind == LS_V_PARAM)
            ls_address_state(a, train, (LsValueId){i});
    for (uint32_t i = 1; i < train->nvalue; i++)        /* sums over ranks follow: ls_rank_layout */
        if (train->value[i].kind == LS_V_STATE && !train->value[i].rank_sum
            && train->value[i].rank_levels == 0)
            ls_address_state(a, train, (LsValueId){i});
    return a;
}

/* The evaluation form reads averages in the place of their parameters, but other graphs do not. */
static LsAddress find_state(LsAddresses *a, const LsGraph *g, LsValueId v)
{
    const LsValue *x = &g->value[v.i];
    for (uint32_t k = 0; k < a->nstate && !g->training && x->kind == LS_V_PARAM; k++) {
        const char *of = a->state[k].g->value[a->state[k].v.i].average_of;
        if (of != NULL && strcmp(of, x->name) == 0)
            return a->state[k].row.t.at;
    }
    for (uint32_t k = 0; k < a->nstate; k++)
        if (strcmp(a->state[k].row.t.name, x->name) == 0)
            return a->state[k].row.t.at;
    ls_error(a->cx, (LsWhere){-1, x->name, NULL}, LS_E_VERIFY, NULL,
             "is state of the evaluation form only");
    return (LsAddress){LS_AT_NONE, 0};
}

static LsAddress find_input(LsAddresses *a, const LsGraph *g, LsValueId v)
{
    const LsValue *x = &g->value[v.i];
    for (uint32_t k = 0; k < a->train->ninput; k++)
        if (strcmp(a->train->value[a->train->input[k].i].name, x->name) == 0)
            return (LsAddress){LS_AT_INPUT, k};
    ls_error(a->cx, (LsWhere){-1, x->name, NULL}, LS_E_VERIFY, NULL,
             "is input of the evaluation form only");
    return (LsAddress){LS_AT_NONE, 0};
}

void ls_address_shared(LsAddresses *a, const LsValueId *result, uint32_t n)
{
    a->shared = result;
    a->nshared = n;
    a->shared_at = a->state_bytes;
    for (uint32_t k = 0; k < n; k++)
        a->state_bytes += ls_align(ls_value_bytes(a->train, result[k], a->real_bytes),
                                   LS_ALIGNMENT);
}

LsAddress ls_address_of_shared(const LsAddresses *a, const LsGraph *g, LsValueId v)
{
    int64_t at = a->shared_at;
    for (uint32_t k = 0; k < a->nshared && g == a->train; k++) {
        if (a->shared[k].i == v.i)
            return (LsAddress){LS_AT_STATE, at};
        at += ls_align(ls_value_bytes(g, a->shared[k], a->real_bytes), LS_ALIGNMENT);
    }
    return (LsAddress){LS_AT_NONE, 0};
}

/* Writes the element of a constant with this logical index to `to`. */
static void put_element(const LsAddresses *a, const LsValue *x, const LsGraph *g, LsValueId v,
                        int64_t logical, unsigned char *to)
{
    if (x->type == LS_REAL && a->real_bytes == 8) {
        double d = ls_const_at(g, v, logical);
        memcpy(to, &d, 8);
    } else {
        size_t size = (size_t)ls_type_bytes(x->type, 4);
        memcpy(to, (const char *)x->data + (size_t)logical * size, size);
    }
}

static LsAddress add_constant(LsAddresses *a, const LsGraph *g, LsValueId v)
{
    const LsValue *x = &g->value[v.i];
    int64_t bytes = ls_value_bytes(g, v, a->real_bytes), n = ls_count(&x->shape);
    size_t size = (size_t)ls_type_bytes(x->type, a->real_bytes);
    if (n == 0)         /* an empty list: no kernel reads it */
        return (LsAddress){LS_AT_CONST, 0};
    unsigned char *data = ls_arena_alloc(a->cx->arena, (size_t)bytes + 1, 1);
    int64_t stride[LS_MAX_RANK], index[LS_MAX_RANK] = {0}, at = 0;
    ls_strides(&x->shape, x->layout, stride);
    for (int64_t i = 0; i < n; i++) {
        put_element(a, x, g, v, i, data + (size_t)at * size);
        for (int k = x->shape.rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < x->shape.dim[k])
                break;
            at -= stride[k] * x->shape.dim[k];
            index[k] = 0;
        }
    }
    /* Equal constants share bytes. */
    for (uint32_t k = 0; k + bytes <= a->nconst; k += LS_ALIGNMENT)
        if (memcmp(a->constant + k, data, (size_t)bytes) == 0)
            return (LsAddress){LS_AT_CONST, k};
    uint32_t offset = a->nconst, end = offset + (uint32_t)ls_align(bytes, LS_ALIGNMENT);
    a->constant = ls_arena_grow(a->cx->arena, a->constant, a->nconst, end, 1, &a->cap_const);
    memset(a->constant + offset, 0, end - offset);
    memcpy(a->constant + offset, data, (size_t)bytes);
    a->nconst = end;
    return (LsAddress){LS_AT_CONST, offset};
}

LsAddress ls_address_source(LsAddresses *a, const LsGraph *g, LsValueId v)
{
    switch (g->value[v.i].kind) {
    case LS_V_PARAM:
    case LS_V_STATE: return find_state(a, g, v);
    case LS_V_INPUT: return find_input(a, g, v);
    case LS_V_CONST: return add_constant(a, g, v);
    default:         return ls_address_of_shared(a, g, v);
    }
}
