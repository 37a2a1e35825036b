/* compiler/adapters/adapter_values.h -- initial values of adapters: drawn, or from a file of
 * peft. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTER_VALUES_H
#define LS_COMPILER_ADAPTERS_ADAPTER_VALUES_H

#include "compiler/adapters/adapter_spec.h"
#include "compiler/adapters/safetensors.h"

typedef struct LsAdapterValues {
    LsCtx *cx;
    const LsAdapterSpec *spec;
    LsSafeTensors *file;        /* NULL: values are drawn */
} LsAdapterValues;

/* Opens the spec's file, if it has one. False after a diagnostic. */
bool ls_adapter_values_open(LsAdapterValues *v, LsCtx *cx, const LsAdapterSpec *spec);
/* The tensor of that key; NULL after a diagnostic: the file lacks it, or has another shape. Drawn
 * ones are those of peft: A uniform in +-1 / sqrt(in), B zeros; of a table A zeros, B normal. */
const float *ls_adapter_value(LsAdapterValues *v, const char *key, const LsShape *shape, bool table,
                              bool b);
/* The file's tensor of a module that is trained as it is, or its bias; NULL: there is no file, or
 * not that tensor; with *bad: after a diagnostic, another number of elements. */
const float *ls_adapter_saved(LsAdapterValues *v, const char *key, int64_t count, bool *bad);
/* False after a diagnostic: the file has a tensor that nothing took. */
bool ls_adapter_values_end(LsAdapterValues *v);

#endif
