/* compiler/adapters/pack_modules.h -- --quantize-frozen: which weights a program keeps in few bits,
 * by the names of their modules. */
#ifndef LS_COMPILER_ADAPTERS_PACK_MODULES_H
#define LS_COMPILER_ADAPTERS_PACK_MODULES_H

#include "compiler/onnx_repair/file_edit.h"
#include "compiler/packed/packed_tensor.h"

typedef struct LsPackChoice {
    LsCodesForm form;
    bool nested;                /* the scales are codes, too */
    const char **target; uint32_t ntarget;      /* modules; none: all products but the last */
    const char *text;           /* as the user wrote it */
} LsPackChoice;

/* One value of the option: "nf4:q_proj,v_proj". False after a message. */
bool ls_pack_option(LsCtx *cx, const char *text, LsPackChoice *to);

/* Whether some initializer has numbers of 16 bits. */
bool ls_onnx_has_16_bits(const Onnx__GraphProto *g);

/* Lists the weights in u->cx->packed: those that the choices name, and of 16 bits those that
 * products and tables read. A list that is there already stays as it is. False after a
 * diagnostic. */
bool ls_pack_modules(LsEditor *u, const LsPackChoice *choice, uint32_t n);

#endif
