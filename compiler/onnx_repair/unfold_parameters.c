/* compiler/onnx_repair/unfold_parameters.c -- turns a constant that an exporter folded from a
 * remaining parameter back into a node. Trained by itself, the constant would be a second
 * parameter. Models whose output layer is the transposed token table are exported so: the
 * exporter's notes tell it, or, in files without notes, the values. */
#include "compiler/onnx_repair/unfold_parameters.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_file/onnx_wire.h"

/* The only initializer of reals among the names that t was folded from; NULL: none, or several. */
static const Onnx__TensorProto *only_origin(LsEditor *u, const Onnx__TensorProto *t)
{
    const char *list = ls_onnx_source(u->s, ls_text(t->name))->folded_from, *name;
    const Onnx__TensorProto *found = NULL;
    while (list != NULL && (name = ls_meta_item(u->cx->arena, &list)) != NULL) {
        const Onnx__TensorProto *of = ls_edit_real(u, name);
        if (of != NULL && found != NULL)
            return NULL;
        found = of != NULL ? of : found;
    }
    return found;
}

typedef enum { OTHER, RESHAPED, TRANSPOSED, SPREAD } Form;

/* Bytes of two tensors of one type. The transposed one is read in blocks, whose memory is given
 * back: each row of it touches all of its pages. */
typedef struct Both {
    const LsArena *arena;
    const unsigned char *t, *of;
    int64_t rows, columns;      /* of `of` */
    size_t bytes;               /* of an element */
} Both;

static bool is_transposed(const Both *b)
{
    enum { BLOCK = 512 };
    bool same = true;
    for (int64_t i = 0, end; i < b->rows && same; i = end) {
        end = i + BLOCK < b->rows ? i + BLOCK : b->rows;
        for (int64_t j = 0; j < b->columns && same; j++)
            for (int64_t k = i; k < end && same; k++)
                same = memcmp(b->of + (size_t)(k * b->columns + j) * b->bytes,
                              b->t + (size_t)(j * b->rows + k) * b->bytes, b->bytes)
                       == 0;
        ls_arena_let_go(b->arena, b->of, (size_t)(end * b->columns) * b->bytes);
        ls_arena_let_go(b->arena, b->t, (size_t)(b->rows * b->columns) * b->bytes);
    }
    return same;
}

static bool is_reshaped(const Both *b)
{
    const size_t all = (size_t)(b->rows * b->columns) * b->bytes;
    bool same = true;
    for (size_t at = 0, n; at < all && same; at += n) {
        n = all - at < LS_ARENA_PART ? all - at : LS_ARENA_PART;
        same = memcmp(b->of + at, b->t + at, n) == 0;
        ls_arena_let_go(b->arena, b->of, at + n);
        ls_arena_let_go(b->arena, b->t, at + n);
    }
    return same;
}

static Form form_of(LsEditor *u, const Onnx__TensorProto *t, const Onnx__TensorProto *of)
{
    const int64_t n = ls_edit_count(t);
    LsReals x, y;
    if (n < 1 || n != ls_edit_count(of) || !ls_edit_reals(u, t, &x) || !ls_edit_reals(u, of, &y)
        || x.data_type != y.data_type)
        return OTHER;
    Both b = {u->cx->arena, x.raw, y.raw, 1, n, (size_t)x.bytes};
    if (is_reshaped(&b))
        return RESHAPED;
    if (of->n_dims != 2 || t->n_dims != 2 || of->dims[0] != t->dims[1] || of->dims[1] != t->dims[0])
        return OTHER;
    b.rows = of->dims[0];
    b.columns = of->dims[1];
    return is_transposed(&b) ? TRANSPOSED : OTHER;
}

/* An initializer of integers: the shape of t. */
static char *shape_of(LsEditor *u, const Onnx__TensorProto *t)
{
    LsArena *a = u->cx->arena;
    Onnx__TensorProto *shape = ls_arena_alloc(a, 1, sizeof *shape);
    onnx__tensor_proto__init(shape);
    shape->name = (char *)ls_edit_fresh(u, ls_arena_printf(a, "%s.shape", t->name));
    shape->has_data_type = true;
    shape->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    shape->n_dims = 1;
    shape->dims = ls_arena_alloc(a, 1, sizeof *shape->dims);
    shape->dims[0] = (int64_t)t->n_dims;
    shape->n_int64_data = t->n_dims;
    shape->int64_data = t->dims;
    ls_edit_add_initializer(u, shape);
    return shape->name;
}

static void compute(LsEditor *u, Onnx__TensorProto *t, const Onnx__TensorProto *of, Form form)
{
    static const char *const op[] = {
        [TRANSPOSED] = "Transpose", [RESHAPED] = "Reshape", [SPREAD] = "Expand"};
    Onnx__NodeProto *p = ls_edit_node(u, op[form], of->name, t->name, form == TRANSPOSED ? 1 : 2);
    if (form != TRANSPOSED)     /* the transposition of a matrix needs no operand */
        p->input[1] = shape_of(u, t);
    ls_edit_add_in_front(u, p);
}

static void retie(LsEditor *u, uint32_t id, const Onnx__TensorProto *of, Form form)
{
    LsOnnxEdits *e = u->e;
    Onnx__TensorProto *t = u->real[id];
    u->real[id] = NULL;
    ls_edit_drop_initializer(u, t);
    compute(u, t, of, form);
    ls_edit_note(u, &e->retied, &e->nretied, &e->cap_retied, t->name, of->name);
}

/* ---- parameters that were spread over the batch, such as class tokens ---- */

/* All parts along the first `axes` axes are the same. */
static bool repeats(LsEditor *u, const Onnx__TensorProto *t, size_t axes)
{
    LsReals r;
    int64_t parts = 1;
    for (size_t k = 0; k < axes; k++)
        parts *= t->dims[k];
    if (t->n_dims <= axes || parts < 2 || !ls_edit_reals(u, t, &r))
        return false;
    const size_t part = (size_t)(r.count / parts) * (size_t)r.bytes;
    bool same = true;
    for (int64_t i = 1; i < parts && same; i++) {
        const unsigned char *own = r.raw + (size_t)i * part;
        same = memcmp(r.raw, own, part) == 0;
        ls_arena_let_go(r.arena, own, part);
    }
    return same;
}

static Onnx__TensorProto *first_part(LsEditor *u, const Onnx__TensorProto *t, size_t axes,
                                     const char *name)
{
    LsArena *a = u->cx->arena;
    Onnx__TensorProto *p = ls_arena_alloc(a, 1, sizeof *p);
    onnx__tensor_proto__init(p);
    p->name = ls_arena_strdup(a, name);
    p->n_dims = t->n_dims;
    p->dims = ls_arena_alloc(a, t->n_dims, sizeof *p->dims);
    memcpy(p->dims, t->dims, t->n_dims * sizeof *p->dims);
    for (size_t k = 0; k < axes; k++)
        p->dims[k] = 1;
    p->has_data_type = p->has_raw_data = true;
    p->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    p->raw_data = (ProtobufCBinaryData){(size_t)ls_edit_count(p) * sizeof(float),
                                        (uint8_t *)ls_edit_data(u, t)};
    return p;
}

/* The leading axes along which t repeats one part; 0: none. A part of one repeated number tells
 * nothing, but the name "expand" does. Rows of a table may be repeated along the steps, too. */
static size_t repeated_axes(LsEditor *u, const Onnx__TensorProto *t)
{
    const bool tells = t->n_dims > 2 && ls_edit_differs_within(u, t);
    if (tells && strncmp(t->name, "embedding", 9) == 0 && repeats(u, t, t->n_dims - 1))
        return t->n_dims - 1;
    return (tells || strncmp(t->name, "expand", 6) == 0) && repeats(u, t, 1) ? 1 : 0;
}

/* Tensors that were folded from one parameter alone. */
static void unspread(LsEditor *u)
{
    LsOnnxEdits *e = u->e;
    for (uint32_t id = 1; id < u->nid; id++) {
        Onnx__TensorProto *t = u->real[id];
        const char *from,
            *list = t != NULL ? ls_onnx_source(u->s, ls_text(t->name))->folded_from : NULL;
        if (list == NULL || ls_source_parameters(u->cx->arena, u->s, list, &from) != 1
            || ls_edit_real(u, from) != NULL)
            continue;
        const size_t axes = repeated_axes(u, t);
        if (axes == 0)
            continue;
        Onnx__TensorProto *p = first_part(u, t, axes, ls_edit_fresh(u, from));
        ls_edit_add_initializer(u, p);
        u->real[id] = NULL;
        ls_edit_drop_initializer(u, t);
        compute(u, t, p, SPREAD);
        ls_edit_note(u, &e->unspread, &e->nunspread, &e->cap_unspread, p->name, t->name);
    }
}

/* ---- by values ---- */

enum { ROWS = 1, FACTOR = 2 };  /* read as a table of rows; as the factor of a product */

static int use_of(const Onnx__NodeProto *p, size_t k)
{
    const char *op = ls_text(p->op_type);
    if ((strcmp(op, "Gather") == 0 && k == 0)
        || (strcmp(op, "EmbedLayerNormalization") == 0 && k == 2))
        return ROWS;
    return k == 1 && (strstr(op, "MatMul") != NULL || strstr(op, "Gemm") != NULL) ? FACTOR : 0;
}

/* A matrix, by what a transposed or reshaped copy shares with it: the number of its elements, and
 * the sum of some of their bits. Factors that begin a run of equal ones know how many of these are
 * left. */
typedef struct Matrix { int64_t count; uint64_t sum; uint32_t id, left; } Matrix;

static int by_numbers(const void *x, const void *y)
{
    const Matrix *a = x, *b = y;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    if (a->sum != b->sum)
        return a->sum < b->sum ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The sum over some elements of a matrix. turned: over those that its transpose has in the places
 * of the others. All may be most of the file. */
static uint64_t sum_of(LsEditor *u, const Onnx__TensorProto *t, bool turned)
{
    enum { SOME = 32 };
    LsReals r;
    uint64_t sum = 0, draw = 1;
    if (!ls_edit_reals(u, t, &r) || r.count == 0)
        return 0;
    const int64_t rows = t->dims[0], columns = t->dims[1], n = r.count < SOME ? r.count : SOME;
    for (int64_t k = 0; k < n; k++) {
        draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const int64_t i = r.count <= SOME ? k : (int64_t)((draw >> 11) % (uint64_t)r.count);
        const float v = ls_reals_at(&r, turned ? i % rows * columns + i / rows : i);
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        sum += (bits + (uint64_t)k) * UINT64_C(0x9e3779b97f4a7c15);
    }
    ls_reals_let_go(&r);
    return sum;
}

static Matrix matrix_of(LsEditor *u, uint32_t id, bool turned)
{
    return (Matrix){ls_edit_count(u->real[id]), sum_of(u, u->real[id], turned), id, 0};
}

/* The first of the n matrices, which are sorted, that is not before `like`. */
static uint32_t first_like(const Matrix *m, uint32_t n, const Matrix *like)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (by_numbers(&m[mid], like) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Tables of rows, sorted, that can be told apart from others. */
static Matrix *tables_of(LsEditor *u, const int *uses, uint32_t *n)
{
    Matrix *table = ls_arena_alloc(u->scratch, u->nid, sizeof *table);
    *n = 0;
    for (uint32_t id = 1; id < u->nid; id++)
        if (u->real[id] != NULL && u->real[id]->n_dims == 2 && (uses[id] & ROWS)
            && ls_edit_differs_within(u, u->real[id]))
            table[(*n)++] = matrix_of(u, id, false);
    return table;
}

/* Factors with as many elements as some table, sorted; each as it is, and as its transpose. The
 * data of others are not read. */
static Matrix *factors_like(LsEditor *u, const int *uses, const Matrix *table, uint32_t ntable,
                            uint32_t *n)
{
    Matrix *sorted = ls_arena_alloc(u->scratch, ntable, sizeof *sorted);
    Matrix *factor = ls_arena_alloc(u->scratch, 2 * (size_t)u->nid, sizeof *factor);
    memcpy(sorted, table, ntable * sizeof *sorted);
    qsort(sorted, ntable, sizeof *sorted, by_numbers);
    *n = 0;
    for (uint32_t id = 1; id < u->nid; id++) {
        if (u->real[id] == NULL || uses[id] != FACTOR || u->real[id]->n_dims != 2)
            continue;
        const Matrix like = {.count = ls_edit_count(u->real[id])};
        const uint32_t at = first_like(sorted, ntable, &like);
        for (int turned = 0; at < ntable && sorted[at].count == like.count && turned < 2; turned++)
            factor[(*n)++] = matrix_of(u, id, turned);
    }
    qsort(factor, *n, sizeof *factor, by_numbers);
    for (uint32_t from = 0, to; from < *n; from = to) {
        for (to = from; to < *n && factor[to].count == factor[from].count
                        && factor[to].sum == factor[from].sum;
             to++)
            ;
        factor[from].left = to - from;
    }
    return factor;
}

/* A table and the factor of a product that have the same numbers, not all alike, are one parameter:
 * they come from different layers, which start at different random numbers. */
static void retie_by_values(LsEditor *u)
{
    int *uses = ls_arena_alloc(u->scratch, u->nid, sizeof *uses);
    uint32_t ntable, nfactor;
    for (size_t i = 0; i < u->g->n_node; i++)
        for (size_t k = 0; k < u->g->node[i]->n_input; k++)
            uses[ls_names_find(&u->names, ls_text(u->g->node[i]->input[k]))] |=
                use_of(u->g->node[i], k);
    const Matrix *table = tables_of(u, uses, &ntable);
    if (ntable == 0)
        return;
    Matrix *factor = factors_like(u, uses, table, ntable, &nfactor);
    for (uint32_t t = 0; t < ntable; t++) {
        const uint32_t at =
            first_like(factor, nfactor, &(Matrix){.count = table[t].count, .sum = table[t].sum});
        if (at == nfactor || factor[at].count != table[t].count || factor[at].sum != table[t].sum)
            continue;
        const Onnx__TensorProto *of = u->real[table[t].id];
        const uint32_t left = factor[at].left;
        uint32_t kept = 0;
        for (uint32_t k = 0; k < left; k++) {
            const uint32_t id = factor[at + k].id;
            const Form form = u->real[id] != NULL ? form_of(u, u->real[id], of) : OTHER;
            if (u->real[id] == NULL)
                continue;               /* found as the other of its two entries */
            if (form != OTHER)
                retie(u, id, of, form);
            else
                factor[at + kept++].id = id;
        }
        factor[at].left = kept;
    }
}

void ls_onnx_hoist_results(LsArena *a, Onnx__GraphProto *g)
{
    Onnx__TensorProto **list = ls_arena_alloc(a, g->n_initializer + g->n_node + 1, sizeof *list);
    size_t n = g->n_initializer, kept = 0;
    if (n > 0)
        memcpy(list, g->initializer, n * sizeof *list);
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *p = g->node[i];
        const bool constant =
            strcmp(ls_text(p->op_type), "Constant") == 0 && p->n_output == 1 && p->n_attribute == 1;
        Onnx__TensorProto *t = constant ? p->attribute[0]->t : NULL;
        if (t == NULL || !ls_onnx_type_is_float(t->data_type)
            || !ls_source_result_name(ls_text(p->output[0]))) {
            g->node[kept++] = g->node[i];
            continue;
        }
        t->name = p->output[0];
        list[n++] = t;
    }
    g->n_node = kept;
    g->initializer = list;
    g->n_initializer = n;
}

void ls_onnx_retie(LsEditor *u)
{
    for (uint32_t id = 1; id < u->nid; id++) {
        const Onnx__TensorProto *t = u->real[id], *of = t != NULL ? only_origin(u, t) : NULL;
        const Form form = of != NULL && of != t ? form_of(u, t, of) : OTHER;
        if (form != OTHER)
            retie(u, id, of, form);
    }
    if (u->s->traced)
        unspread(u);
    else
        retie_by_values(u);
}
