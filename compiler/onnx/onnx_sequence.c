/* compiler/onnx/onnx_sequence.c -- folds away lists of tensors of known length: an operator that
 * makes a list notes its items, and an operator that takes an item becomes that item. PyTorch's
 * exporter writes split and chunk so.
 *
 * Optional values are tensors or sequences, or known to be empty. */
#include "compiler/onnx/onnx_sequence.h"

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_takes.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ITEMS = 1 << 16 };

LsSequence *ls_sequence_new(LsImport *im, int64_t n)
{
    LsSequence *s = ls_arena_alloc(im->cx->arena, 1, sizeof *s);
    s->item = ls_arena_alloc(im->cx->arena, (size_t)n + 1, sizeof *s->item);
    return s;
}

/* Lengths of the parts along an axis of length dim, and their number; -1 after an error. */
static int lengths(LsOnnxNode *n, int64_t dim, int64_t **len)
{
    *len = ls_arena_alloc(n->cx->arena, MAX_ITEMS, sizeof **len);
    bool listed = ls_is(ls_onnx_in(n, 1));
    int count = listed ? ls_onnx_const_ints(n, 1, MAX_ITEMS, *len) : 0;
    if (count < 0)
        return -1;
    bool each = !listed || ls_shape(n->g, n->in[1])->rank == 0;
    if (each) {                 /* all parts have this length, the last may be shorter */
        int64_t size = listed ? (*len)[0] : 1;
        if (size < 1 || (dim + size - 1) / size > MAX_ITEMS)
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "splits length %" PRId64 " by %" PRId64, dim,
                                 size) - 1;
        count = (int)((dim + size - 1) / size);
        for (int k = 0; k < count; k++)
            (*len)[k] = (k + 1) * size <= dim ? size : dim - k * size;
    }
    int64_t left = dim;
    for (int k = 0; k < count && left >= 0; k++)
        left = (*len)[k] < 0 ? -1 : left - (*len)[k];
    if (left != 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "the %d lengths of split do not add up to %" PRId64, count, dim) - 1;
    return count;
}

static LsSequence *split(LsImport *im, LsOnnxNode *n)
{
    if (!ls_onnx_takes(n, 1, 2))
        return NULL;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), x.rank);
    int64_t *len, at = 0;
    int count = axis < 0 ? -1 : lengths(n, x.dim[axis], &len);
    if (count < 0)
        return NULL;
    bool drop = !ls_is(ls_onnx_in(n, 1)) && ls_onnx_int(n, "keepdims", 1) == 0;
    LsSequence *s = ls_sequence_new(im, count);
    for (int k = 0; k < count; k++) {
        LsValueId v = ls_slice_axis(n->cx, n->g, n->in[0], axis, at, at + len[k]);
        at += len[k];
        LsShape without = x;
        without.rank--;
        for (int d = axis; d < without.rank; d++)
            without.dim[d] = x.dim[d + 1];
        s->item[s->n++] = drop && ls_is(v) ? ls_reshape(n->cx, n->g, v, &without) : v;
    }
    return s;
}

static LsSequence *construct(LsImport *im, const LsOnnxNode *n)
{
    LsSequence *s = ls_sequence_new(im, n->nin);
    for (int k = 0; k < n->nin; k++) {
        if (!ls_is(n->in[k]))
            return ls_onnx_error(n, LS_E_TYPE, NULL, "operand %d is no tensor", k), NULL;
        s->item[s->n++] = n->in[k];
    }
    return s;
}

static LsSequence *empty(LsImport *im, const LsOnnxNode *n)
{
    (void)n;
    return ls_sequence_new(im, 0);
}

/* Operand k as a position in a list of n items, negative from the back; -1 after an error. */
static int64_t position(LsOnnxNode *n, int k, int64_t items)
{
    int64_t at = 0;
    if (ls_onnx_const_ints(n, k, 1, &at) != 1)
        return ls_onnx_error(n, LS_E_NOT_CONST, NULL, "operand %d must be one number", k) - 1;
    if (at < -items || at >= items)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "item %" PRId64 " of a sequence of %" PRId64, at,
                             items) - 1;
    return at < 0 ? at + items : at;
}

static bool item_at(LsOnnxNode *n, const LsSequence *s, LsValueId *out)
{
    int64_t at = position(n, 1, s->n);
    *out = at < 0 ? (LsValueId){0} : s->item[at];
    return ls_is(*out);
}

/* With operand 1 before the position in operand 2, by default at the end. */
static LsSequence *insert(LsImport *im, LsOnnxNode *n, const LsSequence *s)
{
    int64_t at = ls_is(ls_onnx_in(n, 2)) ? position(n, 2, (int64_t)s->n + 1) : s->n;
    LsSequence *to = ls_sequence_new(im, (int64_t)s->n + 1);
    if (!ls_is(ls_onnx_in(n, 1)))
        return ls_onnx_error(n, LS_E_TYPE, NULL, "operand 1 is no tensor"), NULL;
    for (int64_t k = 0; at >= 0 && k <= s->n; k++)
        to->item[to->n++] = k == at ? n->in[1] : s->item[k - (k > at)];
    return at < 0 ? NULL : to;
}

/* Without the item at the position in operand 1, by default the last. */
static LsSequence *erase(LsImport *im, LsOnnxNode *n, const LsSequence *s)
{
    int64_t at = ls_is(ls_onnx_in(n, 1)) ? position(n, 1, s->n) : (int64_t)s->n - 1;
    LsSequence *to = ls_sequence_new(im, s->n);
    if (s->n == 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the sequence has no item"), NULL;
    for (int64_t k = 0; at >= 0 && k < s->n; k++)
        if (k != at)
            to->item[to->n++] = s->item[k];
    return at < 0 ? NULL : to;
}

LsValueId ls_onnx_stack(LsCtx *cx, LsGraph *g, const LsValueId item[], uint32_t n, int axis)
{
    LsValueId *part = ls_arena_alloc(cx->arena, n, sizeof *part);
    for (uint32_t k = 0; k < n; k++) {
        LsShape x = *ls_shape(g, item[k]), longer = {.rank = x.rank + 1};
        if (x.rank == LS_MAX_RANK || n > UINT16_MAX) {
            ls_error(cx, (LsWhere){g->node[0].onnx, g->node[0].name, NULL}, LS_E_SHAPE, NULL,
                     "%u items of rank %d cannot be put together", n, x.rank);
            return (LsValueId){0};
        }
        for (int d = 0; d < longer.rank; d++)
            longer.dim[d] = d == axis ? 1 : x.dim[d - (d > axis)];
        part[k] = ls_reshape(cx, g, item[k], &longer);
    }
    return n == 1 ? part[0]
                  : ls_append(cx, g, LS_OP_CONCAT, (int)n, part, &(LsAttr){.axis = {axis}});
}

static bool concat(LsOnnxNode *n, const LsSequence *s, LsValueId *out)
{
    bool fresh = ls_onnx_int(n, "new_axis", 0) != 0;
    if (s->n == 0 || !ls_onnx_has(n, "axis"))
        return ls_onnx_error(n, LS_E_ATTR, NULL, "it needs an axis and at least one item");
    int rank = ls_shape(n->g, s->item[0])->rank + fresh;
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), rank);
    *out = axis < 0 ? (LsValueId){0}
        : fresh     ? ls_onnx_stack(n->cx, n->g, s->item, s->n, axis)
                    : ls_append(n->cx, n->g, LS_OP_CONCAT, (int)s->n, s->item,
                                &(LsAttr){.axis = {axis}});
    return ls_is(*out);
}

static const char *operand_name(const LsOnnxNode *n, size_t k)
{
    const Onnx__NodeProto *p = n->proto;
    return k < p->n_input ? ls_text(p->input[k]) : "";
}

/* Optional, OptionalGetElement, OptionalHasElement. */
static bool optional(LsOnnxNode *n, const LsOnnxValue *from, LsOnnxValue *to, LsValueId *out)
{
    bool there = from->list != NULL || ls_is(from->v);
    if (strcmp(n->op, "OptionalHasElement") == 0) {
        *out = ls_const_int(n->cx, n->g, LS_BOOL, there);
        return ls_is(*out);
    }
    if (!there && strcmp(n->op, "OptionalGetElement") == 0)
        return ls_onnx_error(n, LS_E_TYPE,
                             "read it only in the branch of an If by OptionalHasElement",
                             "the optional value is empty");
    *out = from->v;
    if (from->list != NULL)
        to->list = from->list;
    to->empty = !there;
    return true;
}

/* Operators whose result is a sequence. */
static bool list_of(LsImport *im, LsOnnxNode *n, const LsSequence *from, LsOnnxValue *to)
{
    if (strcmp(n->op, "SplitToSequence") == 0)
        to->list = split(im, n);
    else if (strcmp(n->op, "SequenceConstruct") == 0)
        to->list = construct(im, n);
    else if (strcmp(n->op, "SequenceEmpty") == 0)
        to->list = empty(im, n);
    else if (strcmp(n->op, "SequenceInsert") == 0 && from != NULL)
        to->list = insert(im, n, from);
    else if (strcmp(n->op, "SequenceErase") == 0 && from != NULL)
        to->list = erase(im, n, from);
    return to->list != NULL;
}

bool ls_onnx_sequence(LsImport *im, LsOnnxNode *n, LsValueId *out)
{
    LsOnnxValue *to = &im->value[ls_names_find(&im->m->names, n->nout > 0 ? n->out_name[0] : "")];
    const char *name = operand_name(n, 0);
    const LsOnnxValue none = {0}, *from = name[0] != '\0'
                                              ? &im->value[ls_names_find(&im->m->names, name)]
                                              : &none;
    int before = n->cx->nerror;
    if (n->nout != 1 || n->out_name[0][0] == '\0')
        return ls_onnx_error(n, LS_E_NAME, NULL, "it has one result");
    if (strncmp(n->op, "Optional", 8) == 0)
        return optional(n, from, to, out);
    if (list_of(im, n, from->list, to))
        return true;
    if (n->cx->nerror > before)
        return false;
    if (from->list == NULL)
        return ls_onnx_error(n, LS_E_TYPE, NULL, "operand 0 is no sequence");
    if (strcmp(n->op, "SequenceLength") == 0)
        *out = ls_const_int(n->cx, n->g, LS_I64, from->list->n);
    return ls_is(*out) || (strcmp(n->op, "SequenceAt") == 0 ? item_at(n, from->list, out)
                                                            : concat(n, from->list, out));
}
