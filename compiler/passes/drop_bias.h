/* compiler/passes/drop_bias.h -- drops biases in front of training batch norms. */
#ifndef LS_COMPILER_PASSES_DROP_BIAS_H
#define LS_COMPILER_PASSES_DROP_BIAS_H

#include "compiler/ir/graph.h"
#include "compiler/updates/update_options.h"

/* --drop-bias: a convolution or product whose results only a batch norm with statistics of the
 * batch reads does not add its bias, as the norm takes it off again. The bias stays as it is: its
 * gradient is zero. Running means follow the mean plus the bias, so that they are those of the
 * network with the bias, which the evaluation form and exported files have. Biases that decay, or
 * whose results or means others read, stay, with a warning. An error if none can go. */
bool ls_drop_bias(LsCtx *, LsGraph *, const LsOptimizerOptions *);

#endif
