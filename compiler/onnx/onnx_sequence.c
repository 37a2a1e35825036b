/* compiler/onnx/onnx_sequence.c -- folds away lists of tensors of known length: an operator that makes a list notes its
 * items, and an operator that takes an item becomes that item. PyTorch's exporter writes split and chunk so.
 *
 * SplitToSequence, SequenceConstruct, SequenceAt, ConcatFromSequence (opset 11). */
#include "compiler/onnx/onnx_sequence.h"

#include "compiler/fold/append.h"
#include "compiler/onnx/onnx_takes.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ITEMS = 1 << 16 };

static LsSequence *new_sequence(LsImport *im, int64_t n)
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
    LsSequence *s = new_sequence(im, count);
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
    LsSequence *s = new_sequence(im, n->nin);
    for (int k = 0; k < n->nin; k++)
        s->item[s->n++] = n->in[k];
    return s;
}

static bool item_at(LsOnnxNode *n, const LsSequence *s, LsValueId *out)
{
    int64_t k = 0;
    if (ls_onnx_const_ints(n, 1, 1, &k) != 1)
        return false;
    int64_t at = k < 0 ? k + (int64_t)s->n : k;
    if (at < 0 || at >= (int64_t)s->n)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "item %" PRId64 " of a sequence of %u", k, s->n);
    *out = s->item[at];
    return ls_is(*out);
}

static bool concat(LsOnnxNode *n, const LsSequence *s, LsValueId *out)
{
    bool fresh = ls_onnx_int(n, "new_axis", 0) != 0;
    if (s->n == 0 || !ls_onnx_has(n, "axis"))
        return ls_onnx_error(n, LS_E_ATTR, NULL, "it needs an axis and at least one item");
    int rank = ls_shape(n->g, s->item[0])->rank + fresh;
    LsAttr at = {.axis = {ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), rank)}};
    LsValueId *part = ls_arena_alloc(n->cx->arena, s->n, sizeof *part);
    for (uint32_t k = 0; k < s->n && at.axis.axis >= 0; k++) {
        LsShape x = *ls_shape(n->g, s->item[k]), longer = {.rank = x.rank + 1};
        for (int d = 0; fresh && x.rank < LS_MAX_RANK && d < longer.rank; d++)
            longer.dim[d] = d == at.axis.axis ? 1 : x.dim[d - (d > at.axis.axis)];
        part[k] = fresh ? ls_reshape(n->cx, n->g, s->item[k], &longer) : s->item[k];
    }
    *out = at.axis.axis < 0 ? (LsValueId){0}
                            : ls_append(n->cx, n->g, LS_OP_CONCAT, (int)s->n, part, &at);
    return ls_is(*out);
}

static const char *operand_name(const LsOnnxNode *n, size_t k)
{
    const Onnx__NodeProto *p = n->proto;
    return k < p->n_input ? ls_text(p->input[k]) : "";
}

bool ls_onnx_sequence(LsImport *im, LsOnnxNode *n, LsValueId *out)
{
    LsOnnxValue *to = &im->value[ls_names_find(&im->m->names, n->nout > 0 ? n->out_name[0] : "")];
    const LsOnnxValue *from =
        &im->value[ls_names_find(&im->m->names, n->nin > 0 ? operand_name(n, 0) : "")];
    bool makes = strcmp(n->op, "SplitToSequence") == 0 || strcmp(n->op, "SequenceConstruct") == 0;
    if (n->nout != 1 || n->out_name[0][0] == '\0')
        return ls_onnx_error(n, LS_E_NAME, NULL, "it has one result");
    if (makes) {
        to->list = strcmp(n->op, "SplitToSequence") == 0 ? split(im, n) : construct(im, n);
        return to->list != NULL;
    }
    if (from->list == NULL)
        return ls_onnx_error(n, LS_E_TYPE, NULL, "operand 0 is no sequence");
    return strcmp(n->op, "SequenceAt") == 0 ? item_at(n, from->list, out)
                                            : concat(n, from->list, out);
}
