/* runtime/cuda_kernels/ls_cuda_wide.h -- four or eight neighbours of an array in one access.
 * Included by ls_cuda.h.
 *
 * Floats are read and written 16 bytes at a time, elements of 16 bits 8 or 16 bytes at a time: they
 * are widened as they are read, and a value that they can hold is cut to them as it is written.
 * Places are multiples of the access. Loops in eights (LS_LANES8, LS_ONCE8 and what belongs to
 * them) are those in fours with another number: kernels with elements of 16 bits have them. */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_WIDE_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_WIDE_H

/* One name for all types of elements. */
#ifdef __cplusplus
#define LS_NAMED(name, type) name
#define LS_NAMED_16(x, name) name
#else
#define LS_NAMED(name, type) name##_##type
#define LS_NAMED_16(x, name)                                                                       \
    _Generic((x), const ls_bf16 *: name##_ls_bf16, ls_bf16 *: name##_ls_bf16,                      \
             default: name##_ls_f16)
#define LS_BY_ELEMENT(x, name)                                                                     \
    _Generic((x), const ls_bf16 *: name##_ls_bf16, ls_bf16 *: name##_ls_bf16,                      \
             const ls_f16 *: name##_ls_f16, ls_f16 *: name##_ls_f16, default: name##_real)
#define ls_get4(to, from) LS_BY_ELEMENT(from, ls_get4)(to, from)
#define ls_get8(to, from) LS_BY_ELEMENT(from, ls_get8)(to, from)
#define ls_put4(to, from) LS_BY_ELEMENT(to, ls_put4)(to, from)
#define ls_put8(to, from) LS_BY_ELEMENT(to, ls_put8)(to, from)
#define ls_four_at(four, x, at) LS_BY_ELEMENT(x, ls_four_at)(four, x, at)
#define ls_eight_at(eight, x, at) LS_BY_ELEMENT(x, ls_eight_at)(eight, x, at)
#define LS_BY_EIGHT(x, name)                                                                       \
    _Generic((x), ls_eight_ls_bf16 *: name##_ls_bf16, ls_eight_ls_f16 *: name##_ls_f16,            \
             default: name##_real)
#define ls_fetch8(to, from) LS_BY_EIGHT(to, ls_fetch8)(to, from)
#define ls_pick8(of, k) LS_BY_EIGHT(of, ls_pick8)(of, k)
#endif

/* ---- words of memory ---- */
/* The compiler would split a copy and not always merge it again; it reads a vector as a whole, but
 * does not write it so. */
#ifdef __CUDACC__
LS_FN void ls_load8(uint32_t to[2], const void *from)
{
    const uint2 v = *(const uint2 *)from;
    to[0] = v.x, to[1] = v.y;
}
LS_FN void ls_load16(uint32_t to[4], const void *from)
{
    const uint4 v = *(const uint4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
LS_FN void ls_store8(void *to, const uint32_t from[2])
{
    asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(from[0]), "r"(from[1]) : "memory");
}
LS_FN void ls_store16(void *to, const uint32_t from[4])
{
    asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from[0]), "r"(from[1]),
                 "r"(from[2]), "r"(from[3]) : "memory");
}
#else
/* at: the side in memory. */
#define LS_MOVE_WORDS(name, bytes, at, ...)                                                        \
    LS_FN void name(__VA_ARGS__)                                                                   \
    {                                                                                              \
        LS_CHECK((uintptr_t)at % bytes == 0);                                                      \
        memcpy(to, from, bytes);                                                                   \
    }
LS_MOVE_WORDS(ls_load8, 8, from, uint32_t to[2], const void *from)
LS_MOVE_WORDS(ls_load16, 16, from, uint32_t to[4], const void *from)
LS_MOVE_WORDS(ls_store8, 8, to, void *to, const uint32_t from[2])
LS_MOVE_WORDS(ls_store16, 16, to, void *to, const uint32_t from[4])
#endif

/* ---- floats, doubles ---- */
#if defined __CUDACC__ && defined LS_F64
LS_FN void LS_NAMED(ls_get4, real)(real to[4], const real *from)
{
    const double2 a = *(const double2 *)from, b = *(const double2 *)(from + 2);
    to[0] = a.x, to[1] = a.y, to[2] = b.x, to[3] = b.y;
}
LS_FN void LS_NAMED(ls_put4, real)(real *to, const real from[4])
{
    asm volatile("st.v2.f64 [%0], {%1, %2};" ::"l"(to), "d"(from[0]), "d"(from[1]) : "memory");
    asm volatile("st.v2.f64 [%0], {%1, %2};" ::"l"(to + 2), "d"(from[2]), "d"(from[3]) : "memory");
}
#elif defined __CUDACC__
LS_FN void LS_NAMED(ls_get4, real)(real to[4], const real *from)
{
    const float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}
LS_FN void LS_NAMED(ls_put4, real)(real *to, const real from[4])
{
    asm volatile("st.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(from[0]), "f"(from[1]),
                 "f"(from[2]), "f"(from[3]) : "memory");
}
#else
LS_FN void LS_NAMED(ls_get4, real)(real to[4], const real *from)
{
    LS_CHECK((uintptr_t)from % 16 == 0);
    memcpy(to, from, 4 * sizeof *to);
}
LS_FN void LS_NAMED(ls_put4, real)(real *to, const real from[4])
{
    LS_CHECK((uintptr_t)to % 16 == 0);
    memcpy(to, from, 4 * sizeof *to);
}
#endif
LS_FN void LS_NAMED(ls_get8, real)(real to[8], const real *from)
{
    LS_NAMED(ls_get4, real)(to, from);
    LS_NAMED(ls_get4, real)(to + 4, from + 4);
}
LS_FN void LS_NAMED(ls_put8, real)(real *to, const real from[8])
{
    LS_NAMED(ls_put4, real)(to, from);
    LS_NAMED(ls_put4, real)(to + 4, from + 4);
}

/* ---- 16 bits: two in a word, the first in its low half ---- */
LS_FN real ls_low_ls_bf16(uint32_t two) { return ls_float32(two << 16); }
LS_FN real ls_high_ls_bf16(uint32_t two) { return ls_float32(two & 0xffff0000u); }
LS_FN real ls_half_of(uint32_t bits)
{
    ls_f16 x;
    x.bits = (uint16_t)bits;
    return ls_from_f16(x);
}
LS_FN real ls_low_ls_f16(uint32_t two) { return ls_half_of(two & 0xffffu); }
LS_FN real ls_high_ls_f16(uint32_t two) { return ls_half_of(two >> 16); }
LS_FN uint32_t ls_pair_ls_bf16(real low, real high)
{
    return ls_bits32((float)low) >> 16 | (ls_bits32((float)high) & 0xffff0000u);
}
LS_FN uint32_t ls_pair_ls_f16(real low, real high)
{
    return (uint32_t)ls_to_f16((float)low).bits | (uint32_t)ls_to_f16((float)high).bits << 16;
}

#define LS_WIDE_16(type, count, bytes)                                                             \
    LS_FN void LS_NAMED(ls_get##count, type)(real to[count], const type *from)                     \
    {                                                                                              \
        uint32_t word[count / 2];                                                                  \
        ls_load##bytes(word, from);                                                                \
        LS_UNROLL for (int k = 0; k < count / 2; k++) {                                            \
            to[2 * k] = ls_low_##type(word[k]);                                                    \
            to[2 * k + 1] = ls_high_##type(word[k]);                                               \
        }                                                                                          \
    }                                                                                              \
    LS_FN void LS_NAMED(ls_put##count, type)(type *to, const real from[count])                     \
    {                                                                                              \
        uint32_t word[count / 2];                                                                  \
        LS_UNROLL for (int k = 0; k < count / 2; k++)                                              \
            word[k] = ls_pair_##type(from[2 * k], from[2 * k + 1]);                                \
        ls_store##bytes(to, word);                                                                 \
    }
LS_WIDE_16(ls_bf16, 4, 8)
LS_WIDE_16(ls_bf16, 8, 16)
LS_WIDE_16(ls_f16, 4, 8)
LS_WIDE_16(ls_f16, 8, 16)

/* ---- one element of those ---- */
/* The compiler stops merging loads when it turns an address in a loop into one running pointer, as
 * it then loses the alignment of 16 bytes: so the four are read as one vector, when the first is
 * needed. */
#define LS_NEIGHBOURS(type)                                                                        \
    LS_FN real LS_NAMED(ls_four_at, type)(real four[4], const type *x, int64_t at)                 \
    {                                                                                              \
        if ((at & 3) == 0)                                                                         \
            LS_NAMED(ls_get4, type)(four, x + at);                                                 \
        return four[at & 3];                                                                       \
    }                                                                                              \
    LS_FN real LS_NAMED(ls_eight_at, type)(real eight[8], const type *x, int64_t at)               \
    {                                                                                              \
        if ((at & 7) == 0)                                                                         \
            LS_NAMED(ls_get8, type)(eight, x + at);                                                \
        return eight[at & 7];                                                                      \
    }
LS_NEIGHBOURS(real)
LS_NEIGHBOURS(ls_bf16)
LS_NEIGHBOURS(ls_f16)
#define LS_FOUR(v)                                                                                 \
    real v##_four[4];                                                                              \
    (void)v##_four
#define LS_EIGHT(v)                                                                                \
    real v##_four[8];                                                                              \
    (void)v##_four
#define LS_GET4(v, x, at) ls_four_at(v##_four, x, at)
#define LS_GET8(v, x, at) ls_eight_at(v##_four, x, at)

/* The compiler merges neighbouring loads only if no store lies between them, as the store may
 * alias: so a thread's values wait in registers for the last of them. */
#define LS_PUT_WIDE(count, y, at, v)                                                               \
    do {                                                                                           \
        const int64_t ls_here = (at);                                                              \
        y##_four[ls_here & (count - 1)] = (v);                                                     \
        if ((ls_here & (count - 1)) == count - 1)                                                  \
            ls_put##count((y) + (ls_here - (count - 1)), y##_four);                                \
    } while (0)
#define LS_PUT4(y, at, v) LS_PUT_WIDE(4, y, at, v)
#define LS_PUT8(y, at, v) LS_PUT_WIDE(8, y, at, v)

/* ---- those of several steps ---- No load moves before an earlier store, which may alias: the
 * loads of several steps have to precede the stores of the first. Elements of 16 bits wait as they
 * lie, in half of the registers. */
typedef struct ls_eight_real { real v[8]; } ls_eight_real;
typedef struct ls_eight_ls_bf16 { uint32_t word[4]; } ls_eight_ls_bf16;
typedef struct ls_eight_ls_f16 { uint32_t word[4]; } ls_eight_ls_f16;
LS_FN void LS_NAMED(ls_fetch8, real)(ls_eight_real *to, const real *from)
{
    LS_NAMED(ls_get8, real)(to->v, from);
}
LS_FN real LS_NAMED(ls_pick8, real)(const ls_eight_real *of, int64_t k) { return of->v[k]; }
#define LS_FETCH_16(type)                                                                          \
    LS_FN void LS_NAMED(ls_fetch8, type)(ls_eight_##type *to, const type *from)                    \
    {                                                                                              \
        ls_load16(to->word, from);                                                                 \
    }                                                                                              \
    LS_FN real LS_NAMED(ls_pick8, type)(const ls_eight_##type *of, int64_t k)                      \
    {                                                                                              \
        return k & 1 ? ls_high_##type(of->word[k >> 1]) : ls_low_##type(of->word[k >> 1]);         \
    }
LS_FETCH_16(ls_bf16)
LS_FETCH_16(ls_f16)
#define LS_FOUR_OF(n, v)                                                                           \
    real v##_group[n][4];                                                                          \
    (void)v##_group
#define LS_EIGHT_OF(n, type, v)                                                                    \
    ls_eight_##type v##_group[n];                                                                  \
    (void)v##_group
#define LS_FETCH_WIDE(count, get, n, group, x, at, step, g)                                        \
    do {                                                                                           \
        const int64_t ls_here = (at);                                                              \
        LS_UNROLL for (int ls_of = 0; ls_of < (n); ls_of++)                                        \
            if ((ls_here & (count - 1)) == 0 && (g) + ls_of < ls_to_##g)                           \
                get(group[ls_of], (x) + ls_here + ls_of * (int64_t)(step));                        \
    } while (0)
#define LS_FETCH4(n, v, x, at, step, g) LS_FETCH_WIDE(4, ls_get4, n, v##_group, x, at, step, g)
#define LS_FETCH8(n, v, x, at, step, g) LS_FETCH_WIDE(8, ls_fetch8, n, &v##_group, x, at, step, g)
#define LS_FETCHED4(v, x, at) v##_group[ls_of][(at) & 3]
#define LS_FETCHED8(v, x, at) ls_pick8(&v##_group[ls_of], (at) & 7)

/* ---- bytes: as one word ---- */
#define LS_BYTES_WIDE(count, word_type, suffix)                                                    \
    LS_FN uint8_t ls_byte_at##suffix(word_type *all, const uint8_t *x, int64_t at)                 \
    {                                                                                              \
        if ((at & (count - 1)) == 0) {                                                             \
            LS_CHECK((uintptr_t)(x + at) % count == 0);                                            \
            memcpy(all, __builtin_assume_aligned(x + at, count), sizeof *all);                     \
        }                                                                                          \
        return (uint8_t)(*all >> 8 * (at & (count - 1)));                                          \
    }                                                                                              \
    LS_FN void ls_put_byte##suffix(word_type *all, uint8_t *y, int64_t at, uint8_t value)          \
    {                                                                                              \
        *all = ((at & (count - 1)) == 0 ? 0 : *all) | (word_type)value << 8 * (at & (count - 1));  \
        if ((at & (count - 1)) == count - 1) {                                                     \
            LS_CHECK((uintptr_t)(y + (at - (count - 1))) % count == 0);                            \
            memcpy(__builtin_assume_aligned(y + (at - (count - 1)), count), all, sizeof *all);     \
        }                                                                                          \
    }
LS_BYTES_WIDE(4, uint32_t, )
LS_BYTES_WIDE(8, uint64_t, 8)
#define LS_BYTES4(v)                                                                               \
    uint32_t v##_bytes = 0;                                                                        \
    (void)v##_bytes
#define LS_BYTES8(v)                                                                               \
    uint64_t v##_bytes = 0;                                                                        \
    (void)v##_bytes
#define LS_GET4B(v, x, at) ls_byte_at(&v##_bytes, x, at)
#define LS_GET8B(v, x, at) ls_byte_at8(&v##_bytes, x, at)
#define LS_PUT4B(v, y, at, value) ls_put_byte(&v##_bytes, y, at, value)
#define LS_PUT8B(v, y, at, value) ls_put_byte8(&v##_bytes, y, at, value)

#endif
