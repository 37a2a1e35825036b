/* compiler/onnx_file/onnx_tensor.c -- element types, lengths and conversions of tensor data.
 *
 * Reals of every width become float, integers narrower than 32 bits I32, unsigned 32 and 64 bits
 * I64. */
#include "compiler/onnx_file/onnx_tensor.h"

#include "compiler/ir/graph.h"
#include "compiler/onnx_file/onnx_wire.h"
#include "compiler/packed/half_bits.h"
#include "compiler/packed/packed_tensor.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is little-endian");

typedef enum { F_FLOAT, F_DOUBLE, F_INT32, F_INT64, F_UINT64, F_NONE } Field;  /* field of typed
                                                                                * data */

typedef struct Kind { const char *name; int bytes; LsType type; Field field; } Kind;

#define DT(code) ONNX__TENSOR_PROTO__DATA_TYPE__##code
static const Kind kinds[] = {
    [DT(FLOAT)] = {"float", 4, LS_REAL, F_FLOAT},   [DT(DOUBLE)] = {"double", 8, LS_REAL, F_DOUBLE},
    [DT(FLOAT16)] = {"float16", 2, LS_REAL, F_INT32},
    [DT(BFLOAT16)] = {"bfloat16", 2, LS_REAL, F_INT32},
    [DT(INT64)] = {"int64", 8, LS_I64, F_INT64},    [DT(INT32)] = {"int32", 4, LS_I32, F_INT32},
    [DT(INT16)] = {"int16", 2, LS_I32, F_INT32},    [DT(INT8)] = {"int8", 1, LS_I32, F_INT32},
    [DT(UINT64)] = {"uint64", 8, LS_I64, F_UINT64}, [DT(UINT32)] = {"uint32", 4, LS_I64, F_UINT64},
    [DT(UINT16)] = {"uint16", 2, LS_I32, F_INT32},  [DT(UINT8)] = {"uint8", 1, LS_I32, F_INT32},
    [DT(BOOL)] = {"bool", 1, LS_BOOL, F_INT32},
    [DT(STRING)] = {"string", 0, LS_REAL, F_NONE},
    [DT(COMPLEX64)] = {"complex64", 0, LS_REAL, F_NONE},
    [DT(COMPLEX128)] = {"complex128", 0, LS_REAL, F_NONE},
};

static const Kind *kind_of(int data_type)
{
    static const Kind undefined = {"undefined", 0, LS_REAL, F_NONE},
                      newer = {"newer", 0, LS_REAL, F_NONE};
    if (data_type <= 0)
        return &undefined;
    return data_type < (int)(sizeof kinds / sizeof *kinds) ? &kinds[data_type] : &newer;
}

int ls_onnx_type_bytes(int data_type) { return kind_of(data_type)->bytes; }

const char *ls_onnx_type_name(int data_type) { return kind_of(data_type)->name; }

bool ls_onnx_type_is_float(int data_type)
{
    return kind_of(data_type)->bytes > 0 && kind_of(data_type)->type == LS_REAL;
}

bool ls_onnx_type(int data_type, LsType *type)
{
    *type = kind_of(data_type)->type;
    return kind_of(data_type)->bytes > 0;
}

bool ls_tensor_shape(LsCtx *cx, LsWhere at, const Onnx__TensorProto *t, LsShape *shape,
                     LsType *type)
{
    const char *name = ls_text(t->name);
    if (!ls_onnx_type(t->data_type, type))
        return ls_error(cx, at, LS_E_TYPE, NULL,
                        "tensor '%s' has element type %s (%d), which is not supported",
                        name, ls_onnx_type_name(t->data_type), t->data_type);
    if (t->n_dims > LS_MAX_RANK)
        return ls_error(cx, at, LS_E_SHAPE, NULL,
                        "tensor '%s' has rank %zu; at most %d is supported", name, t->n_dims,
                        LS_MAX_RANK);
    *shape = (LsShape){.rank = (int)t->n_dims};
    int64_t count = 1;
    for (int k = 0; k < shape->rank; k++) {
        int64_t d = shape->dim[k] = t->dims[k];
        if (d < 0)
            return ls_error(cx, at, LS_E_SHAPE, NULL,
                            "tensor '%s' has dimension %" PRId64 " on axis %d", name, d, k);
        if (__builtin_mul_overflow(count, d, &count) || count > LS_MOST_ELEMENTS)
            return ls_error(cx, at, LS_E_SHAPE, NULL, "tensor '%s' has more elements than any "
                            "machine holds: %s", name, ls_shape_text(cx->arena, shape));
    }
    return true;
}

/* Element i of raw data as a double (reals) or an integer. */
static double raw_real(int data_type, const unsigned char *p)
{
    uint16_t h;
    float f;
    double d;
    switch (data_type) {
    case DT(DOUBLE):  memcpy(&d, p, 8); return d;
    case DT(FLOAT):   memcpy(&f, p, 4); return f;
    case DT(FLOAT16): memcpy(&h, p, 2); return ls_half_value(h);
    default:          memcpy(&h, p, 2); return ls_brain_value(h);
    }
}

void ls_raw_to_floats(int data_type, const unsigned char *raw, size_t count, float *to)
{
    const size_t bytes = (size_t)kind_of(data_type)->bytes;
    uint16_t h;
    if (data_type == DT(FLOAT))
        memcpy(to, raw, count * sizeof *to);
    else if (data_type == DT(BFLOAT16))
        for (size_t i = 0; i < count; i++) {
            memcpy(&h, raw + i * sizeof h, sizeof h);
            to[i] = ls_brain_value(h);
        }
    else
        for (size_t i = 0; i < count; i++)
            to[i] = (float)raw_real(data_type, raw + i * bytes);
}

static int64_t raw_int(int data_type, const unsigned char *p)
{
    int64_t i64 = 0;
    switch (data_type) {
    case DT(INT64): case DT(UINT64): memcpy(&i64, p, 8); return i64;
    case DT(INT32):  { int32_t v; memcpy(&v, p, 4); return v; }
    case DT(UINT32): { uint32_t v; memcpy(&v, p, 4); return v; }
    case DT(INT16):  { int16_t v; memcpy(&v, p, 2); return v; }
    case DT(UINT16): { uint16_t v; memcpy(&v, p, 2); return v; }
    case DT(INT8):   return (int8_t)*p;
    case DT(BOOL):   return *p != 0;
    default:         return *p;
    }
}

static void store(LsType type, void *to, size_t i, double real, int64_t integer)
{
    switch (type) {
    case LS_REAL: ((float *)to)[i] = (float)real; break;
    case LS_I64:  ((int64_t *)to)[i] = integer; break;
    case LS_I32:  ((int32_t *)to)[i] = (int32_t)integer; break;
    default:      ((uint8_t *)to)[i] = integer != 0; break;
    }
}

/* raw points to count elements of the tensor's type. Types with the same representation here are
 * not copied if the bytes are aligned. */
static const void *from_raw(LsCtx *cx, int data_type, const unsigned char *raw, size_t count)
{
    const Kind *k = kind_of(data_type);
    bool same = data_type == DT(FLOAT) || data_type == DT(INT64) || data_type == DT(INT32);
    if (same && (uintptr_t)raw % (size_t)k->bytes == 0)
        return raw;
    void *to = ls_arena_alloc(cx->arena, count, (size_t)ls_type_bytes(k->type, 4));
    for (size_t i = 0; i < count; i++) {
        const unsigned char *p = raw + i * (size_t)k->bytes;
        if (k->type == LS_REAL)
            store(k->type, to, i, raw_real(data_type, p), 0);
        else
            store(k->type, to, i, 0, raw_int(data_type, p));
    }
    return to;
}

static size_t typed_count(const Onnx__TensorProto *t, Field f)
{
    switch (f) {
    case F_FLOAT:  return t->n_float_data;
    case F_DOUBLE: return t->n_double_data;
    case F_INT32:  return t->n_int32_data;
    case F_INT64:  return t->n_int64_data;
    case F_UINT64: return t->n_uint64_data;
    default:       return 0;
    }
}

static const void *from_typed(LsCtx *cx, const Onnx__TensorProto *t, size_t count)
{
    const Kind *k = kind_of(t->data_type);
    if (t->data_type == DT(FLOAT))
        return t->float_data;
    if (t->data_type == DT(INT64))
        return t->int64_data;
    void *to = ls_arena_alloc(cx->arena, count, (size_t)ls_type_bytes(k->type, 4));
    for (size_t i = 0; i < count; i++)
        switch (k->field) {
        case F_DOUBLE: store(k->type, to, i, t->double_data[i], 0); break;
        case F_UINT64: store(k->type, to, i, 0, (int64_t)t->uint64_data[i]); break;
        default:
            store(k->type, to, i, t->data_type == DT(BFLOAT16)
                                      ? ls_brain_value((uint16_t)t->int32_data[i])
                                      : ls_half_value((uint16_t)t->int32_data[i]),
                  t->int32_data[i]);
        }
    return to;
}

/* The place of a tensor's data, after a check that they exist. */
typedef struct Data {
    size_t count;
    bool external, raw;
    const LsPackedTensor *packed;       /* not NULL: the file has codes in its place */
} Data;

static bool find_data(LsCtx *cx, LsWhere at, const Onnx__TensorProto *t, Data *d)
{
    LsShape shape;
    LsType type;
    if (!ls_tensor_shape(cx, at, t, &shape, &type))
        return false;
    const Kind *k = kind_of(t->data_type);
    const char *name = ls_text(t->name);
    *d = (Data){.count = (size_t)ls_count(&shape)};
    if (t->segment != NULL)
        return ls_error(cx, at, LS_E_UNSUPPORTED, NULL, "tensor '%s' is stored in segments", name);
    d->external = t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    d->packed = d->external && t->n_external_data == 0 ? ls_packed_named(cx->packed, name) : NULL;
    if (d->external)
        return true;
    d->raw = t->has_raw_data && (t->raw_data.len > 0 || typed_count(t, k->field) == 0);
    size_t have = d->raw ? t->raw_data.len / (size_t)k->bytes : typed_count(t, k->field);
    if (have != d->count || (d->raw && t->raw_data.len % (size_t)k->bytes != 0))
        return ls_error(cx, at, LS_E_DATA, "the file is damaged, or its tensor data was stripped",
                        "tensor '%s' (%s %s) needs %zu bytes of data, the file has %zu", name,
                        k->name, ls_shape_text(cx->arena, &shape), d->count * (size_t)k->bytes,
                        d->raw ? t->raw_data.len : have * (size_t)k->bytes);
    return true;
}

static const float *unpacked(LsCtx *cx, const Data *d)
{
    float *to = ls_arena_alloc(cx->arena, d->count + 1, sizeof *to);
    ls_packed_values(d->packed, to);
    return to;
}

const void *ls_tensor_data(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t)
{
    static const int64_t nothing[1];
    Data d;
    if (!find_data(cx, at, t, &d))
        return NULL;
    if (d.packed != NULL)
        return unpacked(cx, &d);
    if (d.external) {
        size_t bytes = d.count * (size_t)kind_of(t->data_type)->bytes;
        const unsigned char *raw = ls_external_data(cx, at, from, t, bytes);
        return raw != NULL ? from_raw(cx, t->data_type, raw, d.count) : NULL;
    }
    if (d.count == 0)
        return nothing;
    return d.raw ? from_raw(cx, t->data_type, t->raw_data.data, d.count)
                 : from_typed(cx, t, d.count);
}

const LsFileReal *ls_tensor_reals(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                  const Onnx__TensorProto *t)
{
    Data d;
    if (t->data_type != DT(FLOAT))
        return ls_tensor_data(cx, at, from, t);
    if (!find_data(cx, at, t, &d))
        return NULL;
    if (d.packed != NULL)
        return unpacked(cx, &d);
    if (d.external)
        return (const void *)ls_external_data(cx, at, from, t, d.count * sizeof(float));
    return d.raw && d.count > 0 ? (const void *)t->raw_data.data : ls_tensor_data(cx, at, from, t);
}

bool ls_tensor_is_raw(const Onnx__TensorProto *t)
{
    return t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL
           || (t->has_raw_data
               && (t->raw_data.len > 0 || typed_count(t, kind_of(t->data_type)->field) == 0));
}

const unsigned char *ls_tensor_raw(LsCtx *cx, LsWhere at, LsDataFolder *from,
                                   const Onnx__TensorProto *t)
{
    Data d;
    if (!find_data(cx, at, t, &d))
        return NULL;
    const size_t bytes = d.count * (size_t)kind_of(t->data_type)->bytes;
    return d.external ? ls_external_data(cx, at, from, t, bytes) : t->raw_data.data;
}

bool ls_tensor_check(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t)
{
    Data d;
    return find_data(cx, at, t, &d)
        && (!d.external || d.packed != NULL
            || ls_external_check(cx, at, from, t, d.count * (size_t)kind_of(t->data_type)->bytes));
}

static void set_raw(Onnx__TensorProto *t, const void *data, size_t bytes)
{
    t->n_float_data = t->n_double_data = t->n_int32_data = t->n_int64_data = t->n_uint64_data = 0;
    t->n_external_data = 0;
    t->has_data_location = false;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT;
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)data};
}

bool ls_tensor_stored(LsCtx *cx, LsWhere at, LsDataFolder *from, const Onnx__TensorProto *t,
                      LsStoredReals *r)
{
    const bool brain = t->data_type == DT(BFLOAT16), half = t->data_type == DT(FLOAT16);
    Data d;
    if (!find_data(cx, at, t, &d))
        return false;
    if ((brain || half) && (d.external || (d.raw && d.count > 0))) {
        r->as = brain ? LS_STORED_AS_BF16 : LS_STORED_AS_F16;
        r->bytes = d.external ? ls_external_data(cx, at, from, t, 2 * d.count) : t->raw_data.data;
    } else {
        r->as = LS_STORED_AS_F32;
        r->bytes = (const unsigned char *)ls_tensor_reals(cx, at, from, t);
    }
    return r->bytes != NULL;
}

void ls_tensor_hollow(Onnx__TensorProto *t, size_t bytes)
{
    t->data_type = DT(FLOAT);
    set_raw(t, NULL, bytes);
}

bool ls_tensor_to_float(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t)
{
    LsShape shape;
    LsType type;
    const void *data = ls_tensor_reals(cx, at, from, t);
    if (data == NULL || !ls_tensor_shape(cx, at, t, &shape, &type))
        return false;
    t->data_type = DT(FLOAT);
    set_raw(t, data, (size_t)ls_count(&shape) * sizeof(float));
    return true;
}

bool ls_tensor_embed(LsCtx *cx, LsWhere at, LsDataFolder *from, Onnx__TensorProto *t)
{
    LsShape shape;
    LsType type;
    if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return true;
    if (!ls_tensor_shape(cx, at, t, &shape, &type))
        return false;
    size_t bytes = (size_t)ls_count(&shape) * (size_t)kind_of(t->data_type)->bytes;
    const unsigned char *raw = ls_external_data(cx, at, from, t, bytes);
    if (raw != NULL)
        set_raw(t, raw, bytes);
    return raw != NULL;
}
