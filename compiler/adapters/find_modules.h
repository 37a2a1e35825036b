/* compiler/adapters/find_modules.h -- the modules of a file that can have adapters: products,
 * convolutions and tables, by the names that their module has in PyTorch. */
#ifndef LS_COMPILER_ADAPTERS_FIND_MODULES_H
#define LS_COMPILER_ADAPTERS_FIND_MODULES_H

#include "compiler/onnx_repair/file_edit.h"

typedef enum { LS_MODULE_PRODUCT, LS_MODULE_CONV, LS_MODULE_TABLE } LsModuleKind;

typedef struct LsAdaptable {    /* a node that reads the weight of its module */
    const char *module;
    LsModuleKind kind;
    Onnx__NodeProto *node;
    size_t at;                  /* of the node in the graph */
    size_t operand;             /* that is multiplied by the weight, or looks up its rows */
    Onnx__TensorProto *weight;
    int64_t in, out;            /* features: of a convolution channels; of a table rows, columns */
    bool turned;                /* the weight is [in, out]; else [out, in, ...] */
    bool outer;                 /* the product makes an output of the model */
} LsAdaptable;

/* In the order of the graph. *n: their number. */
LsAdaptable *ls_adaptables(LsEditor *u, uint32_t *n);

#endif
