/* compiler/onnx/onnx_import.h -- what the files of the importer share. */
#ifndef LS_COMPILER_ONNX_ONNX_IMPORT_H
#define LS_COMPILER_ONNX_ONNX_IMPORT_H

#include "compiler/onnx/onnx_model.h"
#include "compiler/onnx/onnx_roles.h"
#include "compiler/onnx/onnx_tensor.h"
#include "compiler/passes/passes.h"

typedef struct LsSequence { LsValueId *item; uint32_t n; } LsSequence;   /* a list of tensors */

typedef struct LsOnnxValue {
    LsValueId v;                /* none: not (yet) made */
    bool poison;                /* an error that explains its absence was reported */
    bool stored;                /* the evaluation form holds its data under this name */
    bool weight; /* a constant that may become a parameter: made by a node of the file */
    const LsSequence *list;     /* the value is a sequence; v is none */
} LsOnnxValue;

typedef struct LsVerdict {      /* about an initializer */
    LsRole role;
    const char *why;
    bool doubtful;              /* the file does not tell: the user is asked to look */
} LsVerdict;

typedef struct LsImport {
    LsCtx *cx;
    LsGraph *g;
    const LsImportOptions *o;
    LsOnnxModel *m;
    LsOnnxValue *value;         /* by name id */
    bool *is_output;            /* by name id: a graph output */
    uint32_t *reads;            /* by name id: operands and outputs of that name */
    LsDataFolder data;
    LsVerdict *verdict;         /* by name id */
    bool has_weights;           /* initializers that are trained and more than one number */
    uint32_t nfolded, nblended; /* parameters computed by the exporter from one, from several */
    const char *folded_name, *folded_from;      /* one of them */
    uint32_t nmade_up; const char *made_up;     /* names such as onnx::Mul_12 that folding left */
    uint32_t ndoubtful;         /* verdicts, and the names of some */
    const char *doubtful;
    LsDecisions *decisions;
    int64_t elements;           /* of all results of nodes so far */
    uint32_t nunread;           /* initializers nobody reads, and the first of them */
    const char *unread_name;
    uint32_t nweight_inputs;    /* graph inputs that stand where weights do */
    uint32_t nconverted; /* initializers of another real type than float, and the first of them */
    const Onnx__TensorProto *converted;
    uint32_t nuntied;           /* initializers copied at an Identity, and the first of them */
    const char *untied_name, *untied_from;
} LsImport;

/* What the file says twice agrees, and floats of different types do not meet; false after diagnostics
 * (compiler/onnx/onnx_check.c). */
bool ls_onnx_check(LsCtx *cx, const LsOnnxModel *m);

/* Graph inputs with every dimension bound (compiler/onnx/onnx_inputs.c): sets g->input, g->batch and the
 * values. False after diagnostics; inputs without a shape are poison. */
bool ls_onnx_bind_inputs(LsImport *im);

/* Sets g->output; false after diagnostics (compiler/onnx/onnx_outputs.c). */
bool ls_onnx_add_outputs(LsImport *im);
/* "Nx3x?" of a shape in the file; NULL: of any shape. */
const char *ls_onnx_declared_text(LsArena *a, const Onnx__TensorShapeProto *s);

/* Fills verdict (compiler/onnx/onnx_roles.c). */
void ls_onnx_decide(LsImport *im);
LsValueKind ls_role_kind(LsRole role);
bool ls_onnx_told_to_train(const LsImportOptions *o, const char *name);
bool ls_onnx_told_to_freeze(const LsImportOptions *o, const char *name);
/* Once all nodes are built: freezes parameters that nodes made, fills im->decisions, and says which
 * globs match nothing. */
void ls_onnx_record(LsImport *im);

/* Operands of this node where a weight is expected (compiler/onnx/onnx_found_weights.c). */
void ls_onnx_weights(LsOnnxNode *n);
/* Every state value starts from data that the evaluation form holds, so that it can be exported. */
bool ls_onnx_check_states(LsImport *im);
/* Inputs that turned out to be weights are none. */
void ls_onnx_drop_weight_inputs(LsGraph *g);

/* Operators over sequences (compiler/onnx/onnx_sequence.c): which they are; builds one, *out none where the
 * result is a sequence. */
bool ls_onnx_sequence_op(const LsOnnxFlat *f);
bool ls_onnx_sequence(LsImport *im, LsOnnxNode *n, LsValueId *out);
const char *ls_onnx_operand_name(const LsOnnxNode *n, size_t k);

/* Warnings about the file, and about exports that cannot train as meant (compiler/onnx/onnx_export_advice.c). */
void ls_onnx_hints(LsImport *im);

#endif
