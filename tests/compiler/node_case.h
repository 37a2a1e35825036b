/* tests/compiler/node_case.h -- one of ONNX's operator tests: a model of a node,
 * operands and expected results. */
#ifndef LS_TESTS_COMPILER_NODE_CASE_H
#define LS_TESTS_COMPILER_NODE_CASE_H

#include "compiler/passes/passes.h"

typedef struct LsNodeCase {
    LsCtx *cx;
    char model[1024];           /* the model with its inputs turned into initializers */
    LsValueId *expect;          /* constants holding the expected results, by graph
                                 * output; none: not a tensor */
    LsGraph *holder;            /* the graph that owns them */
    int nexpect;
    const char *op;             /* of the model's last node; "" if it cannot be read */
    bool in_floats;             /* operands and results are float, int64, int32 or bool, at least
                                 * one of them float */
} LsNodeCase;

/* Reads DIR/model.onnx and DIR/test_data_set_0. Writes the model again under `work`, with each
 * graph input turned into an initializer with the test's data: real inputs become parameters, whose
 * gradients can be checked. False: the case has a value that is no tensor, or an unsupported type
 * (why: a word). */
bool ls_node_case_read(LsNodeCase *c, LsCtx *cx, const char *dir, const char *work,
                       const char **why);

#endif
