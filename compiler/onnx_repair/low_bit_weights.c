/* compiler/onnx_repair/low_bit_weights.c -- see the header. */
#include "compiler/onnx_repair/low_bit_weights.h"

#include <string.h>

#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "compiler/packed/four_bits.h"
#include "compiler/packed/packed_tensor.h"

#define DT(code) ONNX__TENSOR_PROTO__DATA_TYPE__##code
enum { UINT4 = 21, INT4 = 22 };         /* newer than some distributions' definitions */
enum { LARGEST_BLOCK = 1 << 30 };

static Onnx__TensorProto *stored(const LsEditor *u, const Onnx__NodeProto *p, size_t k)
{
    const char *name = p->n_input > k ? ls_text(p->input[k]) : "";
    for (size_t i = 0; name[0] != '\0' && i < u->g->n_initializer; i++)
        if (strcmp(ls_text(u->g->initializer[i]->name), name) == 0)
            return u->g->initializer[i];
    return NULL;
}

static bool given(const Onnx__NodeProto *p, size_t k)
{
    return p->n_input > k && ls_text(p->input[k])[0] != '\0';
}

static int64_t number(const Onnx__NodeProto *p, const char *name, int64_t or_else)
{
    const Onnx__AttributeProto *a = ls_onnx_attribute(p, name);
    return a != NULL ? a->i : or_else;
}

static bool refuse(LsEditor *u, const Onnx__NodeProto *p, const char *what)
{
    return ls_error(u->cx, LS_NOWHERE, LS_E_DATA, NULL, "%s '%s': %s", ls_text(p->op_type),
                    ls_text(p->output[0]), what);
}

/* `bytes` bytes of codes; NULL: there are not so many. */
static const uint8_t *bytes_of(LsEditor *u, const Onnx__TensorProto *t, int64_t bytes)
{
    if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return ls_external_data(u->cx, LS_NOWHERE, &u->data, t, (size_t)bytes);
    if (t->has_raw_data && t->raw_data.len > 0)
        return t->raw_data.len == (size_t)bytes ? t->raw_data.data : NULL;
    if (t->n_int32_data != (size_t)bytes)
        return NULL;
    uint8_t *to = ls_arena_alloc(u->cx->arena, (size_t)bytes + 1, 1);
    for (int64_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)t->int32_data[i];
    return to;
}

static const LsFileReal *scales_of(LsEditor *u, const Onnx__TensorProto *t, int64_t count)
{
    return t->data_type == DT(FLOAT) && ls_edit_count(t) == count ? ls_edit_data(u, t) : NULL;
}

/* An initializer of float32 that has no data in the file but codes (LsCtx.packed). */
static void weight(LsEditor *u, size_t n_dims, const int64_t *dims, LsPackedTensor *of)
{
    LsArena *a = u->cx->arena;
    Onnx__TensorProto *t = ls_arena_alloc(a, 1, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = (char *)of->name;
    t->n_dims = n_dims;
    t->dims = ls_arena_alloc(a, n_dims + 1, sizeof *t->dims);
    if (n_dims > 0)
        memcpy(t->dims, dims, n_dims * sizeof *dims);
    t->has_data_type = t->has_data_location = true;
    t->data_type = DT(FLOAT);
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    ls_edit_add_initializer(u, t);
    ls_edit_note(u, &u->e->unpacked, &u->e->nunpacked, &u->e->cap_unpacked, of->name, NULL);
    ls_packed_add(u->cx->packed, of);
}

/* Operands from k on are no longer read; those that nobody reads any more leave the file. */
static void let_go(LsEditor *u, Onnx__NodeProto *p, size_t k)
{
    for (; k < p->n_input; k++) {
        Onnx__TensorProto *t = stored(u, p, k);
        if (t != NULL && --u->reads[ls_names_find(&u->names, t->name)] == 0)
            ls_edit_drop_initializer(u, t);
    }
}

/* ---- DequantizeLinear ---- */

static bool low(int type)
{
    return type == DT(INT8) || type == DT(UINT8) || type == UINT4 || type == INT4;
}

static LsCodesForm form_of(int type)
{
    return type == UINT4     ? LS_CODES_U4
           : type == INT4    ? LS_CODES_I4
           : type == DT(INT8) ? LS_CODES_I8
                              : LS_CODES_U8;
}

/* Four bits of number i, low halves first. */
static int half_at(const uint8_t *b, int64_t i)
{
    return i % 2 == 0 ? b[i / 2] & 15 : b[i / 2] >> 4;
}

/* n zero points, a byte for each. */
static const uint8_t *zeros_of(LsEditor *u, int type, const uint8_t *b, int64_t n)
{
    uint8_t *to = ls_arena_alloc(u->cx->arena, (size_t)n + 1, 1);
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)(type < UINT4 ? b[i] : type == UINT4 ? half_at(b, i)
                                                              : (half_at(b, i) ^ 8) - 8);
    return to;
}

static int64_t code_bytes(int type, int64_t n) { return type < UINT4 ? n : n / 2 + n % 2; }

/* Codes of `outer` x `axis` x `inner`; blocks of `block` along the axis have one scale;
 * 0: each slice has one. */
typedef struct Grid { int64_t outer, axis, inner, block, scales; } Grid;

static bool grid_of(const Onnx__NodeProto *p, const Onnx__TensorProto *q,
                    const Onnx__TensorProto *s, Grid *g)
{
    int64_t axis = number(p, "axis", 1), block = number(p, "block_size", 0);
    const int64_t rank = (int64_t)q->n_dims;
    *g = (Grid){1, 1, 1, 0, ls_edit_count(s)};
    if (s->n_dims == 0 || (s->n_dims == 1 && s->dims[0] == 1 && block == 0)) {
        g->inner = ls_edit_count(q);
        return g->inner > 0;
    }
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || block < 0 || block > LARGEST_BLOCK || ls_edit_count(q) == 0)
        return false;
    for (int64_t k = 0; k < rank; k++)
        *(k < axis ? &g->outer : k == axis ? &g->axis : &g->inner) *= q->dims[k];
    if (block == 0)             /* a scale for each slice */
        return s->n_dims == 1 && s->dims[0] == g->axis;
    g->block = block;
    bool fits = s->n_dims == q->n_dims;
    for (int64_t k = 0; fits && k < rank; k++)
        fits = s->dims[k] == (k == axis ? (g->axis + block - 1) / block : q->dims[k]);
    return fits;
}

static bool is_output(const LsEditor *u, const char *name)
{
    for (size_t k = 0; k < u->g->n_output; k++)
        if (strcmp(ls_text(u->g->output[k]->name), name) == 0)
            return true;
    return false;
}

/* False: an operand is not of the file's own constants, and the node stays. */
static bool is_dequantize(const LsEditor *u, const Onnx__NodeProto *p)
{
    if (strcmp(ls_text(p->op_type), "DequantizeLinear") != 0
        || ls_onnx_domain(p->domain)[0] != '\0' || p->n_output != 1
        || is_output(u, ls_text(p->output[0])))
        return false;
    const Onnx__TensorProto *q = stored(u, p, 0), *s = stored(u, p, 1);
    return q != NULL && s != NULL
           && low(q->data_type) && s->data_type == DT(FLOAT)
           && (!given(p, 2) || stored(u, p, 2) != NULL)
           && number(p, "output_dtype", 0) <= DT(FLOAT);
}

static bool dequantize(LsEditor *u, Onnx__NodeProto *p)
{
    const Onnx__TensorProto *q = stored(u, p, 0), *s = stored(u, p, 1), *z = stored(u, p, 2);
    const int64_t n = ls_edit_count(q);
    Grid g;
    if (!grid_of(p, q, s, &g))
        return refuse(u, p, "its scales do not fit the shape of its codes");
    const uint8_t *code = bytes_of(u, q, code_bytes(q->data_type, n)), *zero = NULL;
    const LsFileReal *scale = scales_of(u, s, g.scales);
    if (z != NULL) {
        if (z->data_type != q->data_type || ls_edit_count(z) != g.scales)
            return refuse(u, p, "its zero points do not fit its scales");
        zero = bytes_of(u, z, code_bytes(z->data_type, g.scales));
    }
    if (code == NULL || scale == NULL || (z != NULL && zero == NULL))
        return refuse(u, p, "its codes, scales or zero points have another length than their "
                            "shape, or their data file is missing");
    weight(u, q->n_dims, q->dims,
           &(LsPackedTensor){
               .name = p->output[0],
               .codes = {form_of(q->data_type), n, g.axis, g.inner, g.block, zero != NULL, false},
               .code = code,
               .scale = (const unsigned char *)scale,
               .zero = zero != NULL ? zeros_of(u, q->data_type, zero, g.scales) : NULL});
    let_go(u, p, 0);
    return true;
}

/* ---- products with a factor in 4 bits ---- */

/* Codes of [N, K], each row in whole blocks of a scale and a zero point; low halves first. */
static bool n_bits(LsEditor *u, const Onnx__NodeProto *p, int64_t K, int64_t N, int64_t block,
                   LsPackedTensor *to)
{
    const Onnx__TensorProto *q = stored(u, p, 1), *s = stored(u, p, 2), *z = stored(u, p, 3);
    const int64_t each = (K + block - 1) / block, zbytes = each / 2 + each % 2;
    if (number(p, "bits", 4) != 4 || block % 2 != 0 || given(p, 4) || given(p, 5))
        return refuse(u, p, "only weights of 4 bits without a group index or a bias are read");
    if (given(p, 3) && (z == NULL || z->data_type != DT(UINT8)))
        return refuse(u, p, "only zero points of 4 bits are read");
    const uint8_t *code = bytes_of(u, q, N * each * (block / 2));
    const uint8_t *zero = z != NULL ? bytes_of(u, z, N * zbytes) : NULL;
    const LsFileReal *scale = scales_of(u, s, N * each);
    if (code == NULL || scale == NULL || (z != NULL && zero == NULL))
        return refuse(u, p, "its codes, scales or zero points do not fit K, N and block_size");
    uint8_t *zeros = ls_arena_alloc(u->cx->arena, (size_t)(N * each), 1);
    for (int64_t n = 0; n < N; n++)
        for (int64_t b = 0; b < each; b++)
            zeros[n * each + b] = (uint8_t)(zero != NULL ? half_at(zero + n * zbytes, b) : 8);
    if (K % block != 0) {       /* rows without what fills their last blocks */
        uint8_t *dense = ls_arena_alloc(u->cx->arena, (size_t)(N * K / 2 + 1), 1);
        for (int64_t i = 0; i < N * K; i++)
            dense[i / 2] |= (uint8_t)(half_at(code, i / K * each * block + i % K)
                                      << (i % 2 == 0 ? 0 : 4));
        code = dense;
    }
    *to = (LsPackedTensor){.codes = {LS_CODES_U4, N * K, K, 1, block, true, false},
                           .code = code, .scale = (const unsigned char *)scale, .zero = zeros};
    return true;
}

static bool bnb4(LsEditor *u, const Onnx__NodeProto *p, int64_t K, int64_t N, int64_t block,
                 LsPackedTensor *to)
{
    const Onnx__TensorProto *q = stored(u, p, 1), *s = stored(u, p, 2);
    const int64_t form = number(p, "quant_type", -1), n = K * N;
    const uint8_t *code = bytes_of(u, q, n / 2 + n % 2);
    const LsFileReal *scale = scales_of(u, s, (n + block - 1) / block);
    if (form != LS_FP4 && form != LS_NF4)
        return refuse(u, p, "its quant_type is neither 0 (FP4) nor 1 (NF4)");
    if (code == NULL || scale == NULL)
        return refuse(u, p, "its codes or scales do not fit K, N and block_size");
    *to = (LsPackedTensor){.codes = {(LsCodesForm)form, n, n, 1, block, false, false},
                           .code = code, .scale = (const unsigned char *)scale};
    return true;
}

static bool is_product(const LsEditor *u, const Onnx__NodeProto *p)
{
    const char *op = ls_text(p->op_type);
    return (strcmp(op, "MatMulNBits") == 0 || strcmp(op, "MatMulBnb4") == 0)
           && strcmp(ls_onnx_domain(p->domain), "") != 0 && p->n_output == 1
           && stored(u, p, 1) != NULL && stored(u, p, 2) != NULL;
}

/* turn: the node that makes the factor of the new product. */
static bool product(LsEditor *u, Onnx__NodeProto *p, Onnx__NodeProto **turn)
{
    const int64_t K = number(p, "K", 0), N = number(p, "N", 0), block = number(p, "block_size", 0);
    if (K < 1 || N < 1 || block < 1 || block > LARGEST_BLOCK || K > LARGEST_BLOCK / N * 1024)
        return refuse(u, p, "K, N and block_size must be positive numbers");
    /* The codes are there before so much memory is asked for. */
    const Onnx__TensorProto *q = stored(u, p, 1);
    if (ls_edit_count(q) < K * N / 2 || bytes_of(u, q, ls_edit_count(q)) == NULL)
        return refuse(u, p, "it has fewer codes than K and N say, or their data file is missing");
    LsPackedTensor of;
    if (!(strcmp(p->op_type, "MatMulBnb4") == 0 ? bnb4 : n_bits)(u, p, K, N, block, &of))
        return false;
    let_go(u, p, 1);
    LsArena *a = u->cx->arena;
    of.name = ls_edit_fresh(u, ls_arena_printf(a, "%s.unpacked", ls_text(p->input[1])));
    weight(u, 2, (int64_t[]){N, K}, &of);
    char *turned = (char *)ls_edit_fresh(u, ls_arena_printf(a, "%s.turned", of.name));
    *turn = ls_edit_node(u, "Transpose", of.name, turned, 1);
    p->op_type = ls_arena_strdup(a, "MatMul");
    p->domain = ls_arena_strdup(a, "");
    p->n_attribute = 0;
    p->input[1] = turned;
    p->n_input = 2;
    return true;
}

bool ls_onnx_has_low_bits(const Onnx__GraphProto *g)
{
    static const char *const op[] = {"DequantizeLinear", "MatMulNBits", "MatMulBnb4"};
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < sizeof op / sizeof *op; k++)
            if (strcmp(ls_text(g->node[i]->op_type), op[k]) == 0)
                return true;
    return false;
}

bool ls_onnx_unpack_weights(LsEditor *u)
{
    size_t kept = 0, turned = 0;
    bool ok = true;
    Onnx__NodeProto **turn = ls_arena_alloc(u->scratch, u->g->n_node + 1, sizeof *turn);
    for (size_t i = 0; i < u->g->n_node; i++) {
        Onnx__NodeProto *p = u->g->node[i];
        const bool gone = is_dequantize(u, p);
        if (gone)
            ok = dequantize(u, p) && ok;
        else if (is_product(u, p))
            ok = product(u, p, &turn[turned]) && ok;
        turned += turn[turned] != NULL;
        if (!gone)
            u->g->node[kept++] = p;
    }
    u->g->n_node = kept;
    for (size_t k = 0; k < turned; k++)
        ls_edit_add_in_front(u, turn[k]);
    return ok;
}
