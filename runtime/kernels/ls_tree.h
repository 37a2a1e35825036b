/* runtime/kernels/ls_tree.h -- the tree that adds the gradients of an update's parts; part of ls_math.h.
 *
 * The sum of parts first .. first + n - 1 is the sum of the first p of them plus the sum of the others, p the largest
 * power of two below n. So the bits of the sum depend on the parts alone, wherever they ran: blocks of a power of two
 * parts, at multiples of their length, can be added apart. One process adds as a binary counter counts: after part k a
 * buffer is in use for every bit of k + 1, level l with the sum of 2^l parts. A part that is no update's last one joins
 * the levels of the low bits of k that are set; the last one joins all levels in use. Lower levels hold later parts, and
 * join first. */
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

/* x as it is stored: compilers must not join the product that made it with a sum, as that rounds once instead of twice,
 * and other processes add the stored number. (GPUs' code is compiled without such joins, and clang joins within one
 * expression only.) */
#if defined __CUDACC__ || defined __clang__
#define LS_STORED(x) (x)
#elif __GNUC__ >= 12
#define LS_STORED(x) __builtin_assoc_barrier(x)
#else
#define LS_STORED(x) ({ real ls_stored = (x); __asm__("" : "+m"(ls_stored)); ls_stored; })
#endif

#endif
