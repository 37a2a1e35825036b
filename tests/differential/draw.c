/* tests/differential/draw.c -- see the header. The kernels' header goes with no header of the
 * compiler. */
#include "tests/differential/draw.h"

#define LS_F64
#include "runtime/kernels/ls_kernel.h"

double draw_uniform(uint64_t seed, int64_t step, int64_t stream, int64_t index)
{
    return ls_uniform(seed, step, stream, index);
}

double draw_normal(uint64_t seed, int64_t step, int64_t stream, int64_t index)
{
    return ls_normal(seed, step, stream, index);
}
