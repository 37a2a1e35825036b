/* codegen/program/state_layout.h -- addresses of the values that outlive a step: state, constants,
 * input slots. */
#ifndef LS_CODEGEN_PROGRAM_STATE_LAYOUT_H
#define LS_CODEGEN_PROGRAM_STATE_LAYOUT_H

#include "compiler/onnx/onnx_export.h"
#include "runtime/ls_program.h"
#include "compiler/ir/graph.h"

typedef struct LsStateSlot {
    const LsGraph *g;
    LsValueId v;
    LsStateTensor row;
    int64_t further;            /* LsProgram.further */
} LsStateSlot;

typedef struct LsAddresses {
    LsCtx *cx;
    int real_bytes;
    LsStateSlot *state; uint32_t nstate, cap_state;     /* parameters first, in file order */
    const LsGraph *train;       /* its inputs are the input slots */
    unsigned char *constant;    /* bytes of all constants, laid out and converted to real */
    uint32_t nconst, cap_const; /* bytes */
    int64_t state_bytes;
    int64_t mapped_bytes;       /* of weights that kernels read in the attached file */
    const LsOnnxForm *form;     /* the file; NULL: there is none */
    bool maps;                  /* weights that are not trained, and codes, stay in the file */
    const LsValueId *shared; uint32_t nshared;  /* of an ensemble: results of the training graph
                                                 * that all members read, behind the state */
    int64_t shared_at;
} LsAddresses;

/* Gives the training graph's state its addresses. form: the file with initial values
 * (ls_onnx_eval_form); NULL: there is none. maps: it is attached to the program, so that large
 * weights that nothing writes are read where they lie in it. */
LsAddresses *ls_addresses_new(LsCtx *cx, const LsGraph *train, int real_bytes,
                              const LsOnnxForm *form, bool maps);
/* Where the file has the float32 data, or the codes, of that name; -1: nowhere. */
int64_t ls_onnx_offset(const LsAddresses *a, const char *name);

/* Gives an address to a state value of g, the training graph or its updates, unless its name has
 * one. */
void ls_address_state(LsAddresses *a, const LsGraph *g, LsValueId v);
/* The same at an address that the caller made up. */
void ls_address_state_at(LsAddresses *a, const LsGraph *g, LsValueId v, LsAddress at);

/* Gives those results their places (codegen/planning/shared_steps.h). */
void ls_address_shared(LsAddresses *a, const LsValueId *result, uint32_t n);
/* The place of such a result; LS_AT_NONE: v is none. */
LsAddress ls_address_of_shared(const LsAddresses *a, const LsGraph *g, LsValueId v);

/* The address of a value of g (the training graph or the evaluation form) that no node makes; adds
 * constants to the blob. LS_AT_NONE after a diagnostic. */
LsAddress ls_address_source(LsAddresses *a, const LsGraph *g, LsValueId v);

/* The runtime's description of a value (name, type, shape and layout) at this address. */
LsTensor ls_address_tensor(const LsGraph *g, LsValueId v, LsAddress at);

#endif
