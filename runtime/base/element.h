/* runtime/base/element.h -- loads and stores elements of all widths of reals.
 *
 * real_bytes: of LS_DT_REAL, 4 or 8. Addresses need no alignment. */
#ifndef LS_RUNTIME_BASE_ELEMENT_H
#define LS_RUNTIME_BASE_ELEMENT_H

#include "runtime/ls_program.h"

#include <string.h>

#include "runtime/ls_half.h" /* takes memcpy and integers from the headers above */

static inline bool ls_holds_reals(LsDataType t)
{
    return t == LS_DT_REAL || t == LS_DT_BF16 || t == LS_DT_F16;
}

static inline double ls_real_at(const void *at, int real_bytes)
{
    float f;
    double d;
    if (real_bytes == 8)
        return memcpy(&d, at, 8), d;
    return memcpy(&f, at, 4), (double)f;
}

/* Stores v, rounded to the nearest real. */
static inline void ls_real_put(void *at, double v, int real_bytes)
{
    const float f = (float)v;
    if (real_bytes == 8)
        memcpy(at, &v, 8);
    else
        memcpy(at, &f, 4);
}

/* An element of a type that holds reals. */
static inline double ls_element_at(LsDataType type, const void *at, int real_bytes)
{
    ls_bf16 brain;
    ls_f16 half;
    if (type == LS_DT_BF16)
        return memcpy(&brain, at, 2), (double)ls_from_bf16(brain);
    if (type == LS_DT_F16)
        return memcpy(&half, at, 2), (double)ls_from_f16(half);
    return ls_real_at(at, real_bytes);
}

#endif
