/* compiler/cost/machine_fit.h -- a machine's figures from measured times of kernels. */
#ifndef LS_COMPILER_COST_MACHINE_FIT_H
#define LS_COMPILER_COST_MACHINE_FIT_H

#include "base/arena.h"
#include "compiler/cost/roofline.h"

typedef struct LsSample { LsWork work; double ns; } LsSample;

/* Sets peak f32, memory, cache, overlap and the classes of m so that ls_work_ns comes near the
 * samples: for each class the launch, the share of the peak and those of the memory's speed, none
 * negative, by least squares between relative and absolute errors, outliers counting less. The
 * figures that m came with, scaled to the samples of the class, count where the samples leave it
 * open; of classes without samples they stay, scaled as the parent's were. Returns the share of all
 * measured time by which the samples are missed. */
double ls_machine_fit(LsArena *arena, LsMachine *m, const LsSample *sample, uint32_t n);

#endif
