/* runtime/data/npy.c -- NPY headers and element types (NumPy's format specification, versions 1.0,
 * 2.0). */
#include "runtime/base/tensor_copy.h"
#include "runtime/data/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ls_half.h"

static const struct { const char *descr, *name; int bytes; } element[] = {
    [LS_F32] = {"f4", "float32", 4}, [LS_F64] = {"f8", "float64", 8},
    [LS_F16] = {"f2", "float16", 2}, [LS_BF16] = {"V2", "bfloat16", 2}, [LS_I8] = {"i1", "int8", 1},
    [LS_U8] = {"u1", "uint8", 1}, [LS_I16] = {"i2", "int16", 2}, [LS_U16] = {"u2", "uint16", 2},
    [LS_I32] = {"i4", "int32", 4}, [LS_U32] = {"u4", "uint32", 4}, [LS_I64] = {"i8", "int64", 8},
    [LS_B8] = {"b1", "bool", 1},
};
enum { NELEMENTS = sizeof element / sizeof element[0] };

LsElement ls_element_of(LsDataType type, int real_bytes)
{
    switch (type) {
    case LS_DT_I64: return LS_I64;
    case LS_DT_I32: return LS_I32;
    case LS_DT_BOOL: return LS_B8;
    case LS_DT_U8: return LS_U8;
    default: return real_bytes == 8 ? LS_F64 : LS_F32;
    }
}

int64_t ls_element_bytes(LsElement type) { return element[type].bytes; }
bool ls_element_is_float(LsElement type) { return type <= LS_BF16; }
const char *ls_element_name(LsElement type) { return element[type].name; }

static uint64_t raw(const LsArray *a, int64_t i)
{
    int n = element[a->type].bytes;
    const unsigned char *p = a->data + i * n;
    uint64_t v = 0;
    for (int k = 0; k < n; k++)
        v |= (uint64_t)p[a->swap ? n - 1 - k : k] << 8 * k;
    return v;
}

double ls_array_real(const LsArray *a, int64_t i)
{
    uint64_t bits = raw(a, i);
    uint32_t low = (uint32_t)bits;
    float f;
    double d;
    if (a->type == LS_F32)
        return memcpy(&f, &low, 4), f;
    if (a->type == LS_F64)
        return memcpy(&d, &bits, 8), d;
    if (a->type == LS_F16)
        return ls_from_f16((ls_f16){(uint16_t)bits});
    if (a->type == LS_BF16)
        return ls_from_bf16((ls_bf16){(uint16_t)bits});
    return (double)ls_array_int(a, i);
}

void ls_array_floats(const LsArray *a, int64_t i, int64_t n, float *to, int64_t step)
{
    const unsigned char *from = a->data + i * element[a->type].bytes;
    uint16_t half;
    if (a->type == LS_F32 && !a->swap)
        for (int64_t k = 0; k < n; k++)
            memcpy(to + k * step, from + 4 * k, 4);
    else if (a->type == LS_F16 && !a->swap)
        for (int64_t k = 0; k < n; k++)
            memcpy(&half, from + 2 * k, 2), to[k * step] = ls_from_f16((ls_f16){half});
    else if (a->type == LS_BF16)
        for (int64_t k = 0; k < n; k++)
            memcpy(&half, from + 2 * k, 2), to[k * step] = ls_from_bf16((ls_bf16){half});
    else
        for (int64_t k = 0; k < n; k++)
            to[k * step] = (float)ls_array_real(a, i + k);
}

int64_t ls_array_int(const LsArray *a, int64_t i)
{
    uint64_t bits = raw(a, i);
    double d;
    switch (a->type) {
    case LS_I8: return (int8_t)bits;
    case LS_I16: return (int16_t)bits;
    case LS_I32: return (int32_t)bits;
    case LS_B8: return bits != 0;
    case LS_F32:
    case LS_F64:
    case LS_F16:
    case LS_BF16:
        d = ls_array_real(a, i);
        return d > -9e18 && d < 9e18 ? (int64_t)d : 0;
    default: return (int64_t)bits;
    }
}

/* A piece of the header, not zero-terminated. */
typedef struct Text { const char *p, *end; } Text;

static void skip(Text *t, const char *set)
{
    while (t->p < t->end && *t->p && strchr(set, *t->p))
        t->p++;
}

static bool starts_with(const Text *t, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(t->end - t->p) >= n && memcmp(t->p, word, n) == 0;
}

/* The text after "'key':" and blanks in the header's dictionary; empty if it has no such key. */
static Text header_value(Text header, const char *key)
{
    char quoted[32];
    size_t n = (size_t)snprintf(quoted, sizeof quoted, "'%s'", key);
    Text t = header;
    while (t.p < t.end && !starts_with(&t, quoted))
        t.p++;
    if (t.p < t.end)
        t.p += n;
    skip(&t, " ");
    if (!starts_with(&t, ":"))
        return (Text){header.end, header.end};
    t.p++;
    skip(&t, " ");
    return t;
}

/* Whether this byte order goes with the type. NumPy writes '<V2' for bfloat16, and '|V2' for pairs
 * of bytes without a meaning: also for a bfloat16 array that was loaded without ml_dtypes' view. */
static bool is_order(char order, LsElement type)
{
    return type == LS_BF16 ? order == '<' : memchr("<>|=", order, 4) != NULL;
}

/* Parses "'<f4'": byte order and type. */
static bool read_type(LsArray *a, Text t, const char *what, LsError *e)
{
    enum { LONG = 40 };         /* most characters of a type in a message */
    int n = 0;
    for (int k = 0; k < NELEMENTS && t.end - t.p >= 5 && t.p[0] == '\''; k++)
        if (is_order(t.p[1], (LsElement)k) && memcmp(t.p + 2, element[k].descr, 2) == 0
            && t.p[4] == '\'') {
            a->type = (LsElement)k;
            a->swap = t.p[1] == '>' && element[k].bytes > 1;
            return true;
        }
    while (n < LONG && t.p + n < t.end && t.p[n] && !strchr(",}", t.p[n]))
        n++;
    if (starts_with(&t, "'|V2'"))
        return ls_fail(
            e, LS_EXIT_DATA,
            "%s: element type '|V2' may be anything of two bytes; if it is bfloat16, save "
            "array.view(ml_dtypes.bfloat16)",
            what);
    return ls_fail(e, LS_EXIT_DATA,
                   "%s: element type %.*s is not read; store float32, float64, float16, bfloat16, "
                   "int64, int32, uint8 or bool",
                   what, n > 0 ? n : 1, n > 0 ? t.p : "?");
}

static bool read_dims(LsArray *a, Text t, const char *what, LsError *e)
{
    a->rank = 0;
    a->count = 1;
    if (!starts_with(&t, "("))
        return ls_fail(e, LS_EXIT_DATA, "%s: no shape in the NPY header", what);
    for (t.p++;;) {
        int64_t d = 0;
        skip(&t, " ,");
        if (starts_with(&t, ")"))
            return true;
        bool ok = t.p < t.end && isdigit((unsigned char)*t.p) && a->rank < LS_TENSOR_RANK;
        for (; ok && t.p < t.end && isdigit((unsigned char)*t.p); t.p++)
            ok = !__builtin_mul_overflow(d, (int64_t)10, &d)
                 && !__builtin_add_overflow(d, (int64_t)(*t.p - '0'), &d);
        if (!ok || __builtin_mul_overflow(a->count, d, &a->count))
            return ls_fail(e, LS_EXIT_DATA, "%s: impossible shape in the NPY header", what);
        a->dim[a->rank++] = d;
    }
}

bool ls_npy_read_order(LsArray *a, const unsigned char *data, size_t n, const char *what,
                       bool *fortran_order, LsError *e)
{
    *a = (LsArray){0};
    if (n < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
        return ls_fail(e, LS_EXIT_DATA, "%s: not an NPY file", what);
    bool first = data[6] == 1;
    size_t at = first ? 10 : 12;
    size_t len = data[8] | (size_t)data[9] << 8;
    if (!first)
        len |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (data[6] < 1 || data[6] > 3 || len > n - at)
        return ls_fail(e, LS_EXIT_DATA, "%s: damaged NPY header", what);
    const Text header = {(const char *)data + at, (const char *)data + at + len};
    if (!read_type(a, header_value(header, "descr"), what, e)
        || !read_dims(a, header_value(header, "shape"), what, e))
        return false;
    const Text fortran = header_value(header, "fortran_order");
    *fortran_order = starts_with(&fortran, "True") && a->rank > 1;
    a->data = data + at + len;
    size_t room = n - at - len, each = (size_t)element[a->type].bytes;
    if ((size_t)a->count > room / each) {
        char dims[96];
        return ls_fail(e, LS_EXIT_DATA,
                       "%s: truncated: shape %s takes more than the %zu bytes of %s that are there",
                       what, ls_dims_text(a->rank, a->dim, dims), room, element[a->type].name);
    }
    return true;
}

bool ls_npy_read(LsArray *a, const unsigned char *data, size_t n, const char *what, LsError *e)
{
    bool fortran;
    if (!ls_npy_read_order(a, data, n, what, &fortran, e))
        return false;
    return !fortran
           || ls_fail(e, LS_EXIT_DATA, "%s: Fortran order is not read; save "
                      "numpy.ascontiguousarray(...), or pack it (lowerset data pack)", what);
}

/* Padded to a multiple of 64 bytes, as NumPy does. */
size_t ls_npy_header(char text[512], LsElement type, int rank, const int64_t *dim)
{
    char *p = text + 10;
    size_t room = 500;
    int n = snprintf(p, room, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                     element[type].bytes == 1 ? "|" : "<", element[type].descr);
    for (int d = 0; d < rank; d++)
        n += snprintf(p + n, room - (size_t)n, "%" PRId64 ", ", dim[d]);
    n += snprintf(p + n, room - (size_t)n, "), }");
    while ((10 + n) % 64 != 63)
        p[n++] = ' ';
    p[n++] = '\n';
    memcpy(text, "\x93NUMPY\x01", 8);
    text[8] = (char)(n & 255);
    text[9] = (char)(n >> 8);
    return (size_t)(10 + n);
}
