/* compiler/onnx/onnx_model.h -- a file as the importer wants it: versions checked, functions inlined,
 * names resolved, nodes in an order that can be run. */
#ifndef LS_COMPILER_ONNX_ONNX_MODEL_H
#define LS_COMPILER_ONNX_ONNX_MODEL_H

#include "base/name_ids.h"
#include "compiler/onnx/onnx_edit.h"
#include "compiler/onnx/onnx_report.h"
#include "compiler/onnx/onnx_row.h"
#include "compiler/onnx/onnx_source.h"
#include "compiler/onnx/onnx_wire.h"

typedef struct LsOnnxFlat {     /* a node after inlining */
    const Onnx__NodeProto *proto;
    uint32_t index;             /* in the file; of a function's node: of the call */
    const char *name;           /* of a function's node: CALL/NAME */
    int version;                /* opset of the node's domain; 0: the domain is not imported */
    bool inner;                 /* from a function's body */
} LsOnnxFlat;

enum { LS_MADE_NOT = -1, LS_MADE_INPUT = -2, LS_MADE_INITIALIZER = -3 };

typedef struct LsOnnxModel {
    Onnx__ModelProto *proto;
    const Onnx__GraphProto *graph;
    const char *dir;            /* folder of the file */
    const char *home;           /* where it lies when its links are followed; NULL: not known */
    LsReport *report;           /* sorts diagnostics by node; NULL: none */
    int opset;                  /* of domain "" */
    const LsOnnxSources *sources;       /* what the file says of its tensors' origin */
    const LsOnnxEdits *edits;           /* what was taken back of what the exporter did to them */
    LsOnnxFlat *node; uint32_t nnode, cap_node;
    LsNames functions, taken; /* local functions as DOMAIN:NAME; names that inlining must not use */
    const Onnx__FunctionProto **function;       /* by id in functions */
    uint32_t nexpanded;         /* nodes and calls so far */
    LsNames names;              /* of all values */
    int64_t *maker;             /* by name id: the flat node that makes it, or LS_MADE_... */
    uint32_t *order, norder;    /* flat nodes in run order; those on a cycle are left out */
    bool moved;                 /* that is not the order of the file */
} LsOnnxModel;

/* The node makes a constant that can be a weight: a Constant, or a ConstantOfShape whose shape
 * stands in the file. Those inside functions are shared by all calls and stay constants. */
bool ls_onnx_makes_weight(const LsOnnxModel *m, const LsOnnxFlat *f);
LsWhere ls_flat_where(const LsOnnxFlat *f);
bool ls_flat_is(const LsOnnxFlat *f, const char *op);           /* that operator of ai.onnx */
const char *ls_flat_op_name(LsArena *a, const LsOnnxFlat *f); /* with the domain, unless ai.onnx */
const LsOnnxOp *ls_flat_row(const LsOnnxFlat *f);               /* NULL: none for this opset */
bool ls_flat_supported(const LsOnnxFlat *f);
/* Operators over sequences (onnx_sequence.h). */
bool ls_onnx_sequence_op(const LsOnnxFlat *f);

#endif
