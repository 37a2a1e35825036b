/* runtime/kernels/ls_outer_product.h -- products of a column and a row, so large that no cache
 * holds the result.
 *
 * Such a product takes the time of writing it. Stores around the caches write each line once;
 * others read it first. */
#ifndef LS_RUNTIME_KERNELS_LS_OUTER_PRODUCT_H
#define LS_RUNTIME_KERNELS_LS_OUTER_PRODUCT_H

#include "runtime/kernels/ls_vector.h"

/* Stores a vector at an aligned address, and makes all such stores visible to other threads. */
LS_INLINE void ls_stream(real *to, ls_vec v)
{
#if defined __x86_64__ && LS_VEC_BYTES == 64
    __asm__("vmovntps %1, %0" : "=m"(*(ls_vec *)to) : "v"(v));
#elif defined __x86_64__ && LS_VEC_BYTES == 32
    __asm__("vmovntps %1, %0" : "=m"(*(ls_vec *)to) : "x"(v));
#elif defined __x86_64__ && LS_VEC_BYTES == 16
    __asm__("movntps %1, %0" : "=m"(*(ls_vec *)to) : "x"(v));
#else
    ls_store(to, v);
#endif
}
LS_INLINE void ls_stream_end(void)
{
#ifdef __x86_64__
    __asm__ volatile("sfence" ::: "memory");
#endif
}

/* c[i][j] = a[i] (alpha b[j]), with the bits of a sum that begins with 0, for m rows of n. */
LS_SHARED_FN void ls_outer(real *c, const real *a, const real *b, int64_t m, int64_t n, real alpha)
{
    for (int64_t i = 0; i < m; i++, c += n) {
        int64_t j = 0;
        for (; j < n && (uintptr_t)(c + j) % LS_VEC_BYTES != 0; j++)
            c[j] = a[i] * (alpha * b[j]) + 0;
        for (; j + LS_V <= n; j += LS_V)
            ls_stream(c + j, a[i] * (alpha * ls_load(b + j)) + 0);
        for (; j < n; j++)
            c[j] = a[i] * (alpha * b[j]) + 0;
    }
    ls_stream_end();
}

#endif
