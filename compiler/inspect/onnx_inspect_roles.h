/* compiler/inspect/onnx_inspect_roles.h -- prints the import's decisions about a file's tensors and
 * batch norms. */
#ifndef LS_COMPILER_INSPECT_ONNX_INSPECT_ROLES_H
#define LS_COMPILER_INSPECT_ONNX_INSPECT_ROLES_H

#include "compiler/onnx/onnx_roles.h"

#include <cjson/cJSON.h>

/* Prints a line for each tensor of reals (trained, frozen, statistic, constant; other readers; the
 * reason). Where there are many and `all` is not set: a line for each role and reason. Then prints
 * which statistics batch norms use. */
void ls_inspect_roles_text(FILE *to, LsArena *a, const LsDecisions *d, bool all);
/* Adds "tensors" (all of them) and "batch_norms" to the object. */
void ls_inspect_roles_json(cJSON *o, const LsDecisions *d);

#endif
