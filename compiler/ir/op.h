/* compiler/ir/op.h -- the op table: what the compiler knows about each kind of node.
 *
 * Two tables. An *ONNX row* (LsOnnxOp) turns one node of a file into IR nodes: it reads
 * attributes, knows opset versions, reports errors. An *IR row* (LsOp) is what passes, the
 * scheduler's costs and codegen see. Both live in compiler/ops/<family>.c; the family's .def
 * lists them. A new operator is one row in a file and one line in a .def (plus one in
 * meson.build when the file is new). */
#ifndef LS_COMPILER_IR_OP_H
#define LS_COMPILER_IR_OP_H

#include "compiler/ir/diag.h"
#include "compiler/ir/ir.h"

#define LS_IR_OP(code, row) LS_OP_##code,
#define LS_ONNX_OP(row)
typedef enum { LS_OP_NOP,
#include "compiler/ir/ops.def"
    LS_NOPS } LsOpCode;
#undef LS_IR_OP
#undef LS_ONNX_OP

/* Which emitter of codegen/ prints the kernel. */
typedef enum {
    LS_K_NONE,
    LS_K_MAP,       /* pointwise with broadcasting: `expr` */
    LS_K_REDUCE,    /* `expr` over the broadcast operands, combined over attr.reduce.axes */
    LS_K_FUSED,     /* several of the two above in one loop: attr.fused; made by ls_fuse */
    LS_K_VIEW,      /* no code: the result is the operand's bytes under another shape */
    LS_K_UPDATE,    /* pointwise, writes state in place */
    LS_K_MOVE,      /* transpose, slice, pad, concat, tile, layout conversion: copies by index */
    LS_K_GATHER, LS_K_RESIZE, LS_K_POOL,
    LS_K_SOFTMAX,   /* softmax, log-softmax, their gradients: rows along one axis */
    LS_K_NORM,      /* layer norm and its gradients */
    LS_K_LOSS,      /* softmax cross-entropy, negative log-likelihood, and gradients */
    LS_K_MATMUL, LS_K_CONV,
    LS_K_CONV_WEIGHTS,  /* weight gradients by a kernel of our own; GPUs alone */
    LS_K_CONV_FUSED,    /* one of those with a FUSED node behind it: attr.conv_fused; GPUs alone */
    LS_K_ATTENTION,
    LS_NKERNELS
} LsKernelId;

/* What ls_layout does with the node. */
typedef enum {
    LS_LAY_SAME,    /* operands and results of the full rank share one layout, either will do */
    LS_LAY_LAST,    /* operands and results of rank >= 3 are LS_LAST */
    LS_LAY_ROW,     /* operands and results are LS_ROW */
    LS_LAY_FREE,    /* the kernel reads any layout by strides; results
                     * are LS_ROW (a move chooses) */
} LsLayoutRule;

typedef enum { LS_SUM, LS_MAX, LS_MIN, LS_PROD } LsCombine;
enum { LS_MAX_IN = 16, LS_MAX_OUT = 8 };    /* of an IR row; concat and fused
                                             * nodes may have more inputs */

typedef struct LsOp {
    const char *name;           /* the ONNX op_type, or a lower-case name of our own */
    uint8_t min_in, max_in, nout;   /* max_in 255: any number */
    bool once;                  /* must not be recomputed: changes state */
    uint8_t writes;             /* bit k: operand k is a state value that the node overwrites */
    bool (*infer)(LsCtx *, LsGraph *, LsNodeId);    /* sets shape and type of the results */
    /* Appends gradient nodes. dy[k]: gradient of result k (none if nothing came); the function sets
     * dx[k] for each operand that has one and is wanted (want[k]). NULL: no gradient. */
    void (*grad)(LsCtx *, LsGraph *, LsNodeId, const LsValueId dy[], const bool want[],
                 LsValueId dx[]);
    double (*flops)(const LsGraph *, LsNodeId);     /* NULL: one per element
                                                     * of the largest operand */
    LsKernelId kernel;
    LsLayoutRule layout;
    /* MAP, REDUCE: a C expression over %0 %1 ... (operands, as scalars), $a $b (attr.scalar), %i
     * (index of the element in logical row-major order, whatever the layout), calling only what
     * runtime/kernels/ls_kernel.h gives: ls_exp, ls_max, LS_R(0.5)… */
    const char *expr;
    LsCombine combine;          /* REDUCE */
    bool mean;                  /* REDUCE: divide by the number of elements combined */
    LsType (*type)(const LsGraph *, LsNodeId);      /* MAP: type of the result;
                                                     * NULL: of operand 0 */
    /* MAP, REDUCE, for folding: `expr` on the host, over reals, and over integers and bools alone
     * (then false where it is undefined: overflow, division by zero). A MAP row without eval_int
     * takes reals only; one without eval is not folded. */
    double (*eval)(const double x[], const LsAttr *);
    bool (*eval_int)(const int64_t x[], const LsAttr *, int64_t *y);
} LsOp;

extern const LsOp *const ls_op[LS_NOPS];

/* ---- ONNX side ---- */
typedef struct LsOnnxNode {     /* a node of the file with its operands resolved */
    LsCtx *cx;
    LsGraph *g;
    const char *op, *domain, *name;
    int version;                /* opset of the node's domain */
    int nin, nout;              /* as listed in the file, trailing empty names dropped */
    const LsValueId *in;        /* none where the file leaves an operand out */
    const char *const *out_name;    /* "" where the file leaves a result out */
    const void *proto;          /* Onnx__NodeProto; only compiler/onnx_*.c look inside */
    struct LsImport *import;    /* theirs too; NULL outside an import */
} LsOnnxNode;

typedef struct LsOnnxOp {
    const char *name;           /* ONNX op_type, domain "" */
    int since;                  /* lowest opset whose definition the row reads */
    /* Appends IR nodes; sets out[k] for each result used. False after ls_error. */
    bool (*build)(LsOnnxNode *n, LsValueId out[]);
} LsOnnxOp;

extern const LsOnnxOp *const ls_onnx_op[];      /* ends with NULL */
const LsOnnxOp *ls_onnx_find(const char *name);

/* Attributes (compiler/onnx/onnx_attr.c). Absent: the default. A wrong type is reported and poisons the
 * node: the importer fails it after build. */
bool ls_onnx_has(const LsOnnxNode *n, const char *attr);
int64_t ls_onnx_int(const LsOnnxNode *n, const char *attr, int64_t otherwise);
double ls_onnx_float(const LsOnnxNode *n, const char *attr, double otherwise);
const char *ls_onnx_string(const LsOnnxNode *n, const char *attr, const char *otherwise);
/* Number of integers, at most max; -1: absent. More than max is an error and gives -1. */
int ls_onnx_ints(const LsOnnxNode *n, const char *attr, int max, int64_t out[]);
int ls_onnx_floats(const LsOnnxNode *n, const char *attr, int max, double out[]);
/* Number of elements of a list attribute; 0: absent, or no list. */
int ls_onnx_length(const LsOnnxNode *n, const char *attr);
/* The tensor attribute as a constant value; none: absent. */
LsValueId ls_onnx_tensor(const LsOnnxNode *n, const char *attr);

/* Operand k as compile-time constants: the number read, -1 when the operand is absent, -2 (reported
 * as LS_E_NOT_CONST) when it is computed at run time. An initializer read this way is a setting: it
 * becomes LS_V_CONST and is not trained. */
int ls_onnx_const_ints(LsOnnxNode *n, int k, int max, int64_t out[]);
int ls_onnx_const_reals(LsOnnxNode *n, int k, int max, double out[]);
/* Operand k is a weight: a constant there (Constant node, ConstantOfShape) becomes LS_V_PARAM. */
void ls_onnx_weight(LsOnnxNode *n, int k);
/* The exporter's notes say that this batch norm was traced in training mode, whatever the form that
 * it has in the file. */
bool ls_onnx_traced_training(const LsOnnxNode *n);
/* Which statistics a batch norm uses when training, and what decides it. */
typedef enum { LS_BN_BY_TRAIN, LS_BN_BY_FROZEN, LS_BN_BY_FORM, LS_BN_BY_TRACE, LS_BN_BY_NODES,
               LS_BN_BY_RUNNING, LS_NBN_BY } LsBnBy;
void ls_onnx_note_batch_norm(const LsOnnxNode *n, LsBnBy by);
/* An axis from the file (-rank .. rank-1) made non-negative; reports and
 * returns -1 when out of range. */
int ls_onnx_axis(LsOnnxNode *n, int64_t axis, int rank);
/* ls_error at this node. */
__attribute__((format(printf, 4, 5)))
bool ls_onnx_error(const LsOnnxNode *n, LsErrId id, const char *hint, const char *fmt, ...);

#endif
