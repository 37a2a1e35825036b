/* runtime/kernels/ls_tree.h -- the tree that adds the gradients of an update's parts; part of
 * ls_math.h.
 *
 * The sum of parts first .. first + n - 1 is the sum of the first p of them plus the sum of the
 * others, p the largest power of two below n. So the bits of the sum depend on the parts alone,
 * wherever they ran: blocks of a power of two parts, at multiples of their length, can be added
 * apart. One process adds as a binary counter counts: after part k a buffer is in use for every bit
 * of k + 1, level l with the sum of 2^l parts. A part that is no update's last one joins the levels
 * of the low bits of k that are set; the last one joins all levels in use. Lower levels hold later
 * parts, and join first. */
#ifndef LS_RUNTIME_KERNELS_LS_TREE_H
#define LS_RUNTIME_KERNELS_LS_TREE_H

/* The levels, by bits, that part k joins. */
LS_FN int64_t ls_tree_joined(int64_t k, bool last) { return last ? k : k & ~(k + 1); }

/* The lowest set bit of x, which is above 0. */
LS_FN int64_t ls_tree_lowest(int64_t x)
{
    int64_t level = 0;
    while ((x >> level & 1) == 0)
        level++;
    return level;
}

/* The level that then has the sum. */
LS_FN int64_t ls_tree_level(int64_t k, bool last)
{
    return ls_tree_lowest(!last ? k + 1 : k > 0 ? k : 1);
}

/* Compilers may join a product with the sum that reads it: that rounds once instead of twice. A
 * product that other processes may add as it was stored goes through ls_as_stored. none: 0, but
 * compilers do not know that. (GPUs' code is compiled without such joins.) */
#ifdef LS_F64
typedef uint64_t LsBits;
#else
typedef uint32_t LsBits;
#endif
LS_FN LsBits ls_no_bits(void)
{
    LsBits none = 0;
#ifndef __CUDA_ARCH__
    __asm__("" : "+r"(none));
#endif
    return none;
}
LS_EACH_FN real ls_as_stored(real x, LsBits none)
{
    LsBits bits;
    memcpy(&bits, &x, sizeof bits);
    bits ^= none;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
