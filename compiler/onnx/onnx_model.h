/* compiler/onnx/onnx_model.h -- a file prepared for the importer: versions checked, functions
 * inlined, names resolved, nodes in a run order. */
#ifndef LS_COMPILER_ONNX_ONNX_MODEL_H
#define LS_COMPILER_ONNX_ONNX_MODEL_H

#include "base/name_ids.h"
#include "compiler/onnx_repair/file_edit.h"
#include "compiler/onnx/onnx_report.h"
#include "compiler/onnx/onnx_row.h"
#include "compiler/onnx_repair/tensor_origin.h"
#include "compiler/onnx_file/onnx_wire.h"

typedef struct LsOnnxFlat {     /* a node after inlining */
    const Onnx__NodeProto *proto;
    uint32_t index;             /* in the file; for a function's node: index of the call */
    const char *name;           /* for a function's node: CALL/NAME */
    int version;                /* opset of the node's domain; 0: the domain is not imported */
    bool inner;                 /* from the body of a function or of a node */
    uint32_t ncaptured;         /* last operands of proto: values that only its bodies read */
    /* opsets of the place that the node is from */
    Onnx__OperatorSetIdProto *const *import; size_t nimport;
    int depth;                  /* of nested functions and bodies */
} LsOnnxFlat;

enum { LS_MADE_NOT = -1, LS_MADE_INPUT = -2, LS_MADE_INITIALIZER = -3 };

typedef struct LsOnnxModel {
    Onnx__ModelProto *proto;
    const Onnx__GraphProto *graph;
    const char *dir;            /* folder of the file */
    const char *home;           /* folder of the file with its links resolved; NULL: not known */
    LsReport *report;           /* sorts diagnostics by node; NULL: none */
    int opset;                  /* of domain "" */
    const LsOnnxSources *sources;       /* the file's notes on the origin of its tensors */
    struct LsPackedTensors *packed;     /* weights that may be kept in few bits */
    const LsOnnxEdits *edits;           /* effects of the exporter that were undone */
    LsOnnxFlat *node; uint32_t nnode, cap_node;
    LsNames functions, taken; /* local functions as DOMAIN:NAME; names that inlining must not use */
    const Onnx__FunctionProto **function;       /* by id in functions */
    uint32_t nexpanded;         /* nodes and calls so far */
    LsNames names;              /* of all values */
    int64_t *maker;             /* by name id: the flat node that defines it, or LS_MADE_... */
    uint32_t *order, norder;    /* flat nodes in run order; nodes on a cycle are left out */
    bool moved;                 /* the run order differs from the file's order */
} LsOnnxModel;

/* The node makes a constant that can be a weight: a Constant, or a ConstantOfShape with a constant
 * shape. Constants inside functions are shared by all calls and stay constants. */
bool ls_onnx_makes_weight(const LsOnnxModel *m, const LsOnnxFlat *f);
LsWhere ls_flat_where(const LsOnnxFlat *f);
bool ls_flat_is(const LsOnnxFlat *f, const char *op);           /* f is that operator of ai.onnx */
const char *ls_flat_op_name(LsArena *a, const LsOnnxFlat *f); /* with the domain, unless ai.onnx */
const LsOnnxOp *ls_flat_row(const LsOnnxFlat *f);               /* NULL: no row for this opset */
bool ls_flat_supported(const LsOnnxFlat *f);
/* Operators that the importer handles itself, without a row. Ends with NULL. */
typedef enum { LS_INNER_SAME, LS_INNER_LIST, LS_INNER_BODY } LsInnerKind;
typedef struct LsOnnxInner { const char *name; int since; LsInnerKind kind; } LsOnnxInner;
extern const LsOnnxInner ls_onnx_inner[];
/* Operators over sequences and optional values (onnx_sequence.h). */
bool ls_onnx_sequence_op(const LsOnnxFlat *f);
/* Operators with bodies (onnx_control.h). */
bool ls_onnx_control_op(const LsOnnxFlat *f);

#endif
