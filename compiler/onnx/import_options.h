/* compiler/onnx/import_options.h -- how a model file is read. */
#ifndef LS_COMPILER_ONNX_IMPORT_OPTIONS_H
#define LS_COMPILER_ONNX_IMPORT_OPTIONS_H

#include "compiler/ir/ir.h"

typedef struct LsDim { const char *name; int64_t size; } LsDim;             /* --dim N=8 */
typedef struct LsShapeBinding { const char *input; LsShape shape; } LsShapeBinding;
typedef struct LsImportOptions {
    const LsDim *dim; int ndim;
    const LsShapeBinding *shape; int nshape;
    int64_t batch;              /* --batch: binds the dynamic first dim of every input; 0: none */
    int64_t parts;              /* --microbatches: the graph is that of one of so many parts of the
                                 * batch; 0, 1: of all. A batch that the file fixes is that of a
                                 * part, if `batch` is not that very number */
    bool own_parts;             /* --mixed-parts=own: parts may differ from the batch where the
                                 * model mixes samples */
    bool training;              /* false: evaluation form (batch norm by
                                 * running statistics, no dropout) */
    LsBnMode bn;                /* copied to LsGraph.bn */
    LsDropoutMode dropout;      /* copied to LsGraph.dropout */
    bool bn_var_torch;          /* copied to LsGraph.bn_var_torch */
    bool bn_var_asked;          /* bn_var_torch or its opposite was requested */
    const char *const *freeze; int nfreeze;     /* globs over names of tensors: not trained */
    const char *const *train; int ntrain;       /* trained in any case; wins over freeze */
    const char *const *only; int nonly;         /* trained, and nothing else */
    const char *const *stop; int nstop;         /* globs over names of values and nodes: no gradient
                                                 * flows there */
    struct LsAdapters *adapters;        /* --lora, --adapter: added to the file when it is first
                                         * opened; what they train is trained, and nothing else;
                                         * NULL: none */
    const struct LsPackChoice *pack; uint32_t npack;    /* --quantize-frozen: weights that are kept
                                         * in few bits, where they are not trained */
    bool tie_identity;          /* an Identity of an initializer stays one parameter */
    bool verbose;               /* warnings name every tensor, not just the first ones */
    bool located;               /* do not load initial values, but they must be there: a program
                                 * takes them from the file that it embeds (ls_onnx_eval_form) */
    bool weightless;            /* do not load initial values (plan); missing data files are fine */
} LsImportOptions;

#endif
