/* tests/support/eval_file.h -- the evaluation form of a model file, as one array of bytes. */
#ifndef LS_TESTS_SUPPORT_EVAL_FILE_H
#define LS_TESTS_SUPPORT_EVAL_FILE_H

#include "compiler/onnx/onnx_form_write.h"

static inline bool eval_file(LsCtx *cx, const char *path, const LsImportOptions *o,
                             unsigned char **bytes, size_t *n, LsOnnxSlot **slot, uint32_t *nslot)
{
    LsOnnxForm f;
    if (!ls_onnx_eval_form(cx, path, o, &f))
        return false;
    *bytes = ls_arena_alloc(cx->arena, (size_t)f.bytes + 1, 1);
    *n = (size_t)f.bytes;
    FILE *to = fmemopen(*bytes, *n + 1, "w");
    if (to == NULL || !ls_onnx_form_put(cx, &f, to) || fclose(to) != 0)
        return false;
    *slot = f.slot;
    *nslot = f.nslot;
    return true;
}

#endif
