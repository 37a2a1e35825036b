/* compiler/onnx/import_state.h -- the state of one import: a file, its graph, and facts about its
 * values. */
#ifndef LS_COMPILER_ONNX_IMPORT_STATE_H
#define LS_COMPILER_ONNX_IMPORT_STATE_H

#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx_repair/file_edit.h"
#include "compiler/onnx/onnx_model.h"
#include "compiler/onnx_file/onnx_tensor.h"

typedef struct LsSequence { LsValueId *item; uint32_t n; } LsSequence;   /* a list of tensors */

typedef struct LsOnnxValue {
    LsValueId v;                /* none: not made (yet) */
    int element;                /* onnx_element.h */
    bool poison;                /* an error that explains its absence was reported */
    bool stored;                /* the evaluation form stores its data under this name */
    bool weight; /* a constant that may become a parameter: made by a node of the file */
    const LsSequence *list;     /* a sequence, in which case v is none */
    bool empty;                 /* an optional value without an element; v is none */
} LsOnnxValue;

static inline bool ls_onnx_is_there(const LsOnnxValue *v)
{
    return v->v.i != 0 || v->list != NULL || v->empty;
}

typedef struct LsVerdict {      /* about an initializer */
    LsRole role;
    const char *why;
    bool doubtful;              /* the file does not say: the user is asked to check */
} LsVerdict;

typedef struct LsImport {
    LsCtx *cx;
    LsGraph *g;
    const LsImportOptions *o;
    LsOnnxModel *m;
    uint32_t nname;             /* ids that fit into the arrays by name, here and
                                 * LsOnnxModel.maker */
    LsOnnxValue *value;         /* by name id */
    bool *is_output;            /* by name id: a graph output */
    uint32_t *reads;            /* by name id: operands and outputs of that name */
    LsDataFolder data;
    LsVerdict *verdict;         /* by name id */
    bool has_weights;           /* some trained initializer has more than one element */
    /* Tensors that the exporter computed from one parameter, and from several or from one that is
     * still in the file. */
    LsUntied *folded; uint32_t nfolded, cap_folded;
    LsUntied *blended; uint32_t nblended, cap_blended;
    uint32_t nmade_up; const char *made_up;     /* names such as onnx::Mul_12, left by folding */
    uint32_t ndoubtful;         /* verdicts, and the names of some */
    const char *doubtful;
    LsDecisions *decisions;
    int64_t elements;           /* of all results of nodes so far */
    int64_t unrolled;           /* nodes of bodies so far */
    uint32_t nunread;           /* initializers without a reader, and the first of them */
    const char *unread_name;
    uint32_t nweight_inputs;    /* graph inputs in the place of weights */
    uint32_t nconverted; /* initializers of another real type than float, and the first of them */
    const Onnx__TensorProto *converted;
    uint32_t nuntied;           /* initializers copied at an Identity, and the first of them */
    const char *untied_name, *untied_from;
} LsImport;

/* Builds one node whose operands are built: results go to im->value (onnx_import.c). f outlives the
 * call only as a copy. */
void ls_onnx_build(LsImport *im, const LsOnnxFlat *f);

#endif
