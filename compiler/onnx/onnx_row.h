/* compiler/onnx/onnx_row.h -- the table of ONNX operators: a row turns one node of a file into IR
 * nodes, reads attributes, knows opset versions and reports errors. */
#ifndef LS_COMPILER_ONNX_ONNX_ROW_H
#define LS_COMPILER_ONNX_ONNX_ROW_H

#include "compiler/ir/op.h"

typedef struct LsOnnxNode {     /* a node of the file with its operands resolved */
    LsCtx *cx;
    LsGraph *g;
    const char *op, *domain, *name;
    int version;                /* opset of the node's domain */
    int nin, nout;              /* as listed in the file, trailing empty names dropped */
    const LsValueId *in;        /* none where the file leaves an operand out */
    const int *element;         /* element types of the operands (onnx_element.h); NULL: those of
                                 * their IR types */
    const char *const *out_name;    /* "" where the file leaves a result out */
    const void *proto;          /* Onnx__NodeProto; only compiler/onnx/ looks inside */
    struct LsImport *import;    /* likewise; NULL outside an import */
} LsOnnxNode;

#define LS_MICROSOFT "com.microsoft."
#define LS_PREVIEW "ai.onnx.preview."

typedef struct LsOnnxOp {
    const char *name;           /* ONNX op_type; in other domains than ai.onnx after the domain and
                                 * a dot */
    int since;                  /* lowest opset whose definition the row implements */
    /* Appends IR nodes; sets out[k] for each result that is used. False after ls_error. */
    bool (*build)(LsOnnxNode *n, LsValueId out[]);
} LsOnnxOp;

extern const LsOnnxOp *const ls_onnx_op[];      /* ends with NULL */
const LsOnnxOp *ls_onnx_find(const char *name);

/* ONNX's own cases of an operator: how many there are, how many pass, and how many of these have
 * gradients that were checked. compiler/onnx/conformance.txt, made by ./dev conformance. */
typedef struct LsConformance { int cases, passed, gradients; } LsConformance;

/* False: there is no case of it. */
bool ls_onnx_conformance(const char *op, LsConformance *c);

#endif
