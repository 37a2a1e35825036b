/* compiler/ir/op.h -- the op table: what passes, the scheduler's costs and codegen know about each
 * kind of node.
 *
 * Its rows live in compiler/ops/<family>.c. The family's .def lists them, together with the rows
 * that read operators of a file (compiler/onnx/onnx_row.h). A new operator is one row in a file and
 * one line in a .def (plus one in meson.build when the file is new). */
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

/* The emitter of codegen/ that prints the kernel. */
typedef enum {
    LS_K_NONE,
    LS_K_MAP,       /* pointwise with broadcasting: `expr` */
    LS_K_REDUCE,    /* `expr` over the broadcast operands, combined over attr.reduce.axes */
    LS_K_FUSED,     /* several of the two above in one loop: attr.fused; made by ls_fuse */
    LS_K_VIEW,      /* no code: the result is the operand's bytes under another shape */
    LS_K_UPDATE,    /* pointwise, writes state in place */
    LS_K_MOVE,      /* transpose, slice, pad, concat, tile, layout conversion: copies by index */
    LS_K_GATHER, LS_K_RESIZE, LS_K_SAMPLE, LS_K_POOL,
    LS_K_UNPACK,    /* reals from codes */
    LS_K_SCAN,      /* scans and largest elements: lines along one axis, each computed in
                     * sequence */
    LS_K_SOFTMAX,   /* softmax, log-softmax, their gradients: rows along one axis */
    LS_K_NORM,      /* layer norm and its gradients */
    LS_K_LOSS,      /* softmax cross-entropy, negative log-likelihood, and gradients */
    LS_K_MATMUL, LS_K_CONV,
    LS_K_ATTENTION,
    LS_K_SUM_END,   /* the end of a sum over samples that several nodes have made */
    LS_NKERNELS
} LsKernelId;

/* How ls_layout treats the node. */
typedef enum {
    LS_LAY_SAME,    /* operands and results of the full rank share one layout, of either kind */
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
    uint8_t min_in, max_in, nout;   /* max_in 255: no limit */
    bool once;                  /* must not be recomputed: changes state */
    uint16_t writes;            /* bit k: operand k is a state value that the node overwrites */
    bool (*infer)(LsCtx *, LsGraph *, LsNodeId);    /* sets shape and type of the results */
    /* Appends gradient nodes. dy[k]: gradient of result k (none: no gradient arrived). The function
     * sets dx[k] for each differentiable operand that is wanted (want[k]). NULL: no gradient. */
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
    /* MAP, REDUCE, for constant folding: `expr` on the host, over reals, and over integers and
     * bools (false where undefined: overflow, division by zero). A MAP row without eval_int takes
     * reals only; a row without eval is not folded. */
    double (*eval)(const double x[], const LsAttr *);
    bool (*eval_int)(const int64_t x[], const LsAttr *, int64_t *y);
} LsOp;

extern const LsOp *const ls_op[LS_NOPS];

#endif
