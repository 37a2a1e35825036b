/* runtime/kernels/ls_scale.h -- the machine that moves the loss scale; part of ls_math.h.
 *
 * After `period` steps in a row with finite gradients the scale grows, but only to a finite value;
 * after a step with another gradient it shrinks. These are the machines of jmp's DynamicLossScale
 * (it divides, and has a least scale) and of PyTorch's GradScaler (it multiplies, and has none),
 * bit for bit: the scale is a float in all programs. */
#ifndef LS_RUNTIME_KERNELS_LS_SCALE_H
#define LS_RUNTIME_KERNELS_LS_SCALE_H

typedef struct LsScaleRule {
    double period;              /* steps; 0: the scale never changes */
    double grow;                /* factor of the scale, above 1 */
    double shrink;              /* the same, below 1; with `divides` its divisor, a float above 1 */
    bool divides;
    float least;                /* the scale never shrinks below it */
} LsScaleRule;

/* Scale and counter after a step. counter: good steps since the scale last changed, or since it
 * could not grow. */
LS_FN void ls_scale_step(const LsScaleRule *r, bool finite, float *scale, float *counter)
{
    const float down = r->divides ? *scale / (float)r->shrink : (float)((double)*scale * r->shrink);
    const float up = (float)((double)*scale * r->grow);
    if (r->period == 0)
        return;
    if (!finite) {
        *scale = down > r->least ? down : r->least;
        *counter = 0;
        return;
    }
    if ((double)*counter + 1 < r->period) {
        *counter += 1;
        return;
    }
    *scale = up < INFINITY ? up : *scale;
    *counter = 0;
}

#endif
