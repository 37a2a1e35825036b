/* compiler/adapters/dora.h -- DoRA (arXiv 2402.09353) as peft has it: the rows of W + s B A,
 * divided by their norms, outside of the gradient, times a trained magnitude. */
#ifndef LS_COMPILER_ADAPTERS_DORA_H
#define LS_COMPILER_ADAPTERS_DORA_H

#include "compiler/adapters/adapted.h"
#include "compiler/adapters/adapter_nodes.h"
#include "compiler/adapters/find_modules.h"

/* The norms of a weight's rows; NULL after a diagnostic: its data are missing. */
const float *ls_dora_norms(LsEditor *u, const LsAdaptable *m);
/* Adds the nodes behind `low`, the adapter's own result times its scale: the last one's result is
 * that of the module. x: the adapter's input, after its dropout. */
void ls_dora_result(LsAdapterNodes *n, const LsAdaptable *m, const LsAdapted *of, const char *x,
                    const char *low, int opset);

#endif
