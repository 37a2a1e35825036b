/* compiler/inspect/onnx_inspect_report.h -- what `lowerset inspect` found in a file, as plain data,
 * and its two prints. */
#ifndef LS_COMPILER_INSPECT_ONNX_INSPECT_REPORT_H
#define LS_COMPILER_INSPECT_ONNX_INSPECT_REPORT_H

#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx/onnx_open.h"

#include <stdio.h>

typedef struct LsInspectCount { const char *name; uint32_t n; const char *first; } LsInspectCount;
/* by name id, from 1 */
typedef struct LsInspectCounts { LsNames names; LsInspectCount *item; } LsInspectCounts;
typedef struct LsInspectTensors { uint32_t n; int64_t elements; } LsInspectTensors;

typedef struct LsInspectReport {
    LsCtx *cx;
    LsOnnxModel *m;
    LsInspectCounts ops, unsupported, gradless;
    LsNames open;               /* dimensions and inputs that need an option */
    const LsShapeBinding *bound; int nbound;    /* shapes of inputs from options; none without
                                                 * options */
    LsInspectTensors trained, other;     /* parameters; running statistics and frozen tensors */
    uint32_t ntaught;           /* parameters that some output depends on */
    bool imported;
    bool all;                   /* list all tensors, however many */
    const LsDecisions *decisions;       /* NULL: the import failed */
    bool missing;               /* tensors whose data file does not exist */
    FILE *to_problems, *to_hazards;     /* errors and warnings, by lines ... */
    char *problems, *hazards;   /* ... whose text is here after the streams are closed; for
                                 * free() */
} LsInspectReport;

static inline const Onnx__TensorShapeProto *ls_inspect_shape(const Onnx__ValueInfoProto *p)
{
    bool tensor = p->type != NULL && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        && p->type->tensor_type != NULL;
    return tensor ? p->type->tensor_type->shape : NULL;
}

static inline bool ls_inspect_is_open(const Onnx__TensorShapeProto__Dimension *d)
{
    return d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
           d->dim_value <= 0;
}

static inline const char *ls_inspect_symbol(const Onnx__TensorShapeProto__Dimension *d)
{
    bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return named ? ls_text(d->dim_param) : "";
}

static inline bool ls_inspect_trainable(const LsInspectReport *r)
{
    return r->imported && !r->missing && r->gradless.names.n == 0 && r->ntaught > 0;
}

/* Prints a line about things of the file, which may have any bytes in their names. */
__attribute__((format(printf, 2, 3))) void ls_inspect_tell(FILE *to, const char *fmt, ...);

/* These print the report, and cut its `problems` and `hazards` into lines. False: no memory
 * left. */
void ls_inspect_print_text(LsInspectReport *r, FILE *to);
bool ls_inspect_print_json(LsInspectReport *r, FILE *to);

#endif
