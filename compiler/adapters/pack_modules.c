/* compiler/adapters/pack_modules.c -- see the header. */
#include "compiler/adapters/pack_modules.h"

#include "compiler/adapters/adapter_spec.h"
#include "compiler/adapters/find_modules.h"
#include "compiler/onnx_file/onnx_wire.h"

#include <string.h>

enum { BLOCK = 64 };            /* elements of one scale */

static const struct { const char *name; LsCodesForm form; bool nested; } form[] = {
    {"nf4", LS_CODES_NF4, false},   {"nf4-double", LS_CODES_NF4, true},
    {"fp4", LS_CODES_FP4, false},   {"int8", LS_CODES_I8, false},
    {"bf16", LS_CODES_BF16, false}, {"f16", LS_CODES_F16, false},
};
enum { FORMS = sizeof form / sizeof *form };

static bool refuse(const char *text, const char *why)
{
    fprintf(stderr, "lowerset: --quantize-frozen %s: %s\n", text, why);
    return false;
}

bool ls_pack_option(LsCtx *cx, const char *text, LsPackChoice *to)
{
    const char *colon = strchr(text, ':');
    const size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    size_t k = 0;
    while (k < FORMS && (strlen(form[k].name) != n || strncmp(form[k].name, text, n) != 0))
        k++;
    if (k == FORMS)
        return refuse(text, "the form is nf4, nf4-double, fp4, int8, bf16 or f16");
    *to = (LsPackChoice){.form = form[k].form, .nested = form[k].nested, .text = text};
    to->target = ls_arena_alloc(cx->arena, strlen(text) + 1, sizeof *to->target);
    for (const char *at = colon; at != NULL; at = strchr(at, ',')) {
        const size_t len = strcspn(++at, ",");
        if (len == 0)
            return refuse(text, "a module's name is missing");
        to->target[to->ntarget++] = ls_arena_printf(cx->arena, "%.*s", (int)len, at);
    }
    return true;
}

static bool is_asked(const LsPackChoice *c, const LsAdaptable *m, bool *named)
{
    bool asked = c->ntarget == 0 && m->kind == LS_MODULE_PRODUCT && !m->outer;
    for (uint32_t k = 0; k < c->ntarget && m->module != NULL; k++)
        if (ls_adapter_names(c->target[k], m->module))
            asked = named[k] = true;
    return asked;
}

static bool is_16(int type)
{
    return type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16
        || type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
}

bool ls_onnx_has_16_bits(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (is_16(g->initializer[i]->data_type))
            return true;
    return false;
}

/* Weights of convolutions are not kept so: their kernels read no codes. */
static void list(LsEditor *u, const LsAdaptable *m, LsCodesForm f, bool nested, bool asked)
{
    const char *name = ls_text(m->weight->name);
    const int64_t n = ls_edit_count(m->weight);
    if (m->kind == LS_MODULE_CONV || n == 0 || ls_packed_named(u->cx->packed, name) != NULL)
        return;
    const int64_t block = f < LS_CODES_BF16 ? BLOCK : 0;
    ls_packed_add(u->cx->packed, &(LsPackedTensor){.name = name,
                                                   .codes = {f, n, n, 1, block, false, nested},
                                                   .asked = asked});
}

/* What is named comes before what is not. */
static bool choose(LsEditor *u, const LsPackChoice *c, const LsAdaptable *m, uint32_t n)
{
    bool *named = ls_arena_alloc(u->scratch, c->ntarget + 1, sizeof *named);
    for (uint32_t i = 0; i < n; i++)
        if (is_asked(c, &m[i], named))
            list(u, &m[i], c->form, c->nested, c->ntarget > 0);
    for (uint32_t k = 0; k < c->ntarget; k++)
        if (!named[k])
            return ls_error(u->cx, LS_NOWHERE, LS_E_OPTION, "lowerset inspect -v lists modules",
                            "--quantize-frozen %s: no product or table is named '%s'", c->text,
                            c->target[k]);
    return true;
}

bool ls_pack_modules(LsEditor *u, const LsPackChoice *choice, uint32_t n)
{
    uint32_t count;
    const LsAdaptable *m = ls_adaptables(u, &count);
    bool ok = true;
    for (int named = 1; named >= 0; named--)
        for (uint32_t k = 0; k < n && ok; k++)
            if ((choice[k].ntarget > 0) == (named == 1))
                ok = choose(u, &choice[k], m, count);
    for (uint32_t i = 0; i < count; i++)
        if (is_16(m[i].weight->data_type))
            list(u, &m[i],
                 m[i].weight->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ? LS_CODES_F16
                                                                                  : LS_CODES_BF16,
                 false, false);
    return ok;
}
