/* compiler/cost/machine_fit.h -- fits a machine's figures to measured times of kernels. */
#ifndef LS_COMPILER_COST_MACHINE_FIT_H
#define LS_COMPILER_COST_MACHINE_FIT_H

#include "base/arena.h"
#include "compiler/cost/roofline.h"

typedef struct LsSample { LsWork work; double ns; } LsSample;

/* Sets peak f32, memory, cache, overlap and the classes of m so that ls_work_ns comes near the
 * samples. Each class gets its launch, its share of the peak and its shares of the memory's speed,
 * none negative, by a robust least-squares fit of an error between relative and absolute. The
 * figures that m came with, scaled to the samples of the class, serve as the prior. A class without
 * samples keeps its figures, scaled as its parent's were; one of 16 bits gets its parent's. Returns
 * the error as a share of all measured time. */
double ls_machine_fit(LsArena *arena, LsMachine *m, const LsSample *sample, uint32_t n);

#endif
