/* compiler/onnx_repair/file_edit.h -- shared by the passes over a file's own graph
 * (unmerge_parameters.c, unfold_parameters.c): the graph's initializers of reals by name, their
 * readers, and new names. */
#ifndef LS_COMPILER_ONNX_REPAIR_FILE_EDIT_H
#define LS_COMPILER_ONNX_REPAIR_FILE_EDIT_H

#include "base/name_ids.h"
#include "compiler/onnx_repair/tensor_origin.h"
#include "compiler/onnx_file/onnx_reals.h"

typedef struct LsOnnxEdits {
    LsUntied *untied; uint32_t nuntied, cap_untied;     /* parameters */
    LsUntied *statistic; uint32_t nstatistic, cap_statistic;    /* running means and variances */
    LsUntied *literal; uint32_t nliteral, cap_literal;  /* ones and zeros of norms without
                                                         * parameters */
    LsUntied *lost; uint32_t nlost, cap_lost;   /* parameters of the module that the file lacks;
                                                 * from: nothing */
    LsUntied *retied; uint32_t nretied, cap_retied;     /* transposed or reshaped copies that are
                                                         * computed again */
    LsUntied *halved; uint32_t nhalved, cap_halved;     /* biases whose second half is a constant
                                                         * (single_bias.h) */
    LsUntied *unpacked; uint32_t nunpacked, cap_unpacked;       /* weights of 4 or 8 bits; from:
                                                                 * nothing (low_bit_weights.h) */
    /* parameters that were spread over the batch, and the result */
    LsUntied *unspread; uint32_t nunspread, cap_unspread;
} LsOnnxEdits;

typedef struct LsEditor {
    LsCtx *cx;
    LsArena *scratch;           /* for what is not needed after the last change */
    Onnx__GraphProto *g;
    const LsOnnxSources *s;
    LsDataFolder data;
    bool weightless;            /* values of weights are not needed */
    LsNames names;              /* of all values of the graph */
    Onnx__TensorProto **real;   /* by name id: the initializer of reals; NULL: there is none */
    uint32_t *reads;            /* by name id: operands of nodes, and graph outputs */
    const Onnx__NodeProto **maker;      /* by name id: the node that computes it; NULL: none */
    uint32_t nid;               /* ids that fit into the arrays by name id */
    uint32_t *suffix, cap_suffix, nsuffix;      /* by name id: the number to try next for a similar
                                                 * name; 0: none was made */
    uint32_t cap_initializer, free_in_front;    /* room in g's list of initializers, and before its
                                                 * nodes */
    Onnx__TensorProto **dropped; uint32_t ndropped, cap_dropped;
    LsOnnxEdits *e;
} LsEditor;

/* Fills names, real and reads from g; opens the scratch arena. */
void ls_edit_index(LsEditor *u);
/* The initializer of reals of that name; NULL: there is none. */
Onnx__TensorProto *ls_edit_real(const LsEditor *u, const char *name);
uint32_t ls_edit_reads(const LsEditor *u, const char *name);
int64_t ls_edit_count(const Onnx__TensorProto *t);      /* elements; 0: the dimensions are
                                                         * invalid */
/* The elements as floats; NULL: damaged, or the data file does not exist. Prints no diagnostic. */
const LsFileReal *ls_edit_data(LsEditor *u, const Onnx__TensorProto *t);
/* The same in parts, for tensors that may be large. */
bool ls_edit_reals(LsEditor *u, const Onnx__TensorProto *t, LsReals *r);
/* Not all elements are the same. */
bool ls_edit_differs_within(LsEditor *u, const Onnx__TensorProto *t);
/* A name similar to `like` that no value of the graph has. */
const char *ls_edit_fresh(LsEditor *u, const char *like);
/* Notes that `name` was made from `from` in one of the lists of LsOnnxEdits. */
void ls_edit_note(LsEditor *u, LsUntied **list, uint32_t *n, uint32_t *cap, const char *name,
                  const char *from);
void ls_edit_add_initializer(LsEditor *u, Onnx__TensorProto *t);
/* Initializers are removed from g by ls_edit_finish, all at once. */
void ls_edit_drop_initializer(LsEditor *u, Onnx__TensorProto *t);
void ls_edit_finish(LsEditor *u);     /* frees the scratch arena, too */
/* A node that makes `to` from `from`, with room for two operands; not yet in the graph. */
Onnx__NodeProto *ls_edit_node(LsEditor *u, const char *op, const char *from, char *to, size_t nin);
void ls_edit_add_in_front(LsEditor *u, Onnx__NodeProto *p);

#endif
