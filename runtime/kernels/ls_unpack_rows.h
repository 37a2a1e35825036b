/* runtime/kernels/ls_unpack_rows.h -- elements of packed tensors (runtime/ls_unpack.h) as reals. */
#ifndef LS_RUNTIME_KERNELS_LS_UNPACK_ROWS_H
#define LS_RUNTIME_KERNELS_LS_UNPACK_ROWS_H

#include "runtime/ls_unpack.h"

LS_EXACT_BEGIN
/* The scale of a run of elements. */
LS_SHARED_FN float ls_unpack_scale(const LsPacked *p, const uint8_t *data, int64_t s)
{
    return ls_packed_scale(p, data, s);
}
LS_EXACT_END

/* to[i] = table[code at + i] * scale, whole vectors at even places; returns their number. */
#if defined __AVX512F__ && !defined LS_F64
typedef float ls_unpack_vec __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t ls_unpack_int __attribute__((vector_size(64)));
typedef uint8_t ls_unpack_bytes __attribute__((vector_size(16)));
LS_INLINE int64_t ls_unpack_table(const float *table, const uint8_t *code, int64_t at,
                                  float *restrict to, int64_t n, float scale)
{
    const ls_unpack_vec values = *(const ls_unpack_vec *)table;
    int64_t i = 0;
    for (; at % 2 == 0 && i + 16 <= n; i += 16) {
        uint64_t eight;
        memcpy(&eight, code + (at + i) / 2, 8);
        /* byte k of both holds a code: the even ones in high halves */
        const uint64_t even = eight >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f),
                       odd = eight & UINT64_C(0x0f0f0f0f0f0f0f0f);
        const ls_unpack_bytes a = (ls_unpack_bytes)(
            (uint64_t __attribute__((vector_size(16)))){even, odd});
        const ls_unpack_bytes b = __builtin_shufflevector(a, a, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5,
                                                          13, 6, 14, 7, 15);
        const ls_unpack_int index = __builtin_convertvector(b, ls_unpack_int);
        ls_unpack_vec v;
        __asm__("vpermps %2, %1, %0" : "=v"(v) : "v"(index), "v"(values));
        *(ls_unpack_vec *)(to + i) = v * scale;
    }
    return i;
}
#else
LS_INLINE int64_t ls_unpack_table(const float *table, const uint8_t *code, int64_t at, real *to,
                                  int64_t n, float scale)
{
    (void)table, (void)code, (void)at, (void)to, (void)n, (void)scale;
    return 0;
}
#endif

/* n elements of one scale and zero point. */
LS_INLINE void ls_unpack_run(LsPackedForm form, const uint8_t *code, int64_t at, real *restrict to,
                             int64_t n, float scale, int zero)
{
    int64_t i = 0;
    if (form <= LS_PACKED_NF4) {
        i = ls_unpack_table(ls_packed_table[form], code, at, to, n, scale);
        for (; i < n; i++)
            to[i] = ls_packed_table[form][code[(at + i) / 2] >> ((at + i) % 2 == 0 ? 4 : 0) & 15]
                  * scale;
    } else if (form == LS_PACKED_I8) {
        const int8_t *const from = (const int8_t *)code + at;
        for (; i < n; i++)
            to[i] = (float)(from[i] - zero) * scale;
    } else if (form == LS_PACKED_U8) {
        for (; i < n; i++)
            to[i] = (float)(code[at + i] - zero) * scale;
    } else {
        const int flip = form == LS_PACKED_I4 ? 8 : 0;
        for (; i < n; i++) {
            const int c = code[(at + i) / 2] >> ((at + i) % 2 == 0 ? 0 : 4) & 15;
            to[i] = (float)((c ^ flip) - flip - zero) * scale;
        }
    }
}

/* to[i] = element at + i. */
LS_SHARED_FN void ls_unpack(const LsPacked *p, const uint8_t *data, int64_t at, real *restrict to,
                            int64_t n)
{
    if (p->form == LS_PACKED_F16)
        ls_widen(LS_STORED_F16, to, (const ls_f16 *)data + at, n);
    if (p->form == LS_PACKED_BF16)
        LS_INDEPENDENT for (int64_t i = 0; i < n; i++)
            to[i] = ls_from_bf16(((const ls_bf16 *)data)[at + i]);
    if (p->form >= LS_PACKED_BF16)
        return;
    for (int64_t i = 0, some; i < n; i += some) {
        const int64_t place = (at + i) / p->inner;
        const int64_t along = place % p->axis, in = (at + i) % p->inner;
        if (p->inner == 1)      /* up to the end of the block */
            some = p->block > 0 ? ls_least(p->block - along % p->block, p->axis - along) : 1;
        else                    /* along the inner elements: of one scale, or each of its own */
            some = p->block > 0 ? 1 : p->inner - in;
        some = ls_least(some, n - i);
        const int64_t s = ls_packed_scale_of(p, at + i);
        ls_unpack_run(p->form, data, at + i, to + i, some, ls_unpack_scale(p, data, s),
                      ls_packed_zero(p, data, s));
    }
}

#endif
