/* compiler/onnx/onnx_open.c -- reads a file, checks its versions, unties its parameters and inlines
 * its functions. */
#include "compiler/onnx/onnx_open.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/adapters/adapt.h"
#include "compiler/adapters/pack_modules.h"
#include "compiler/onnx_file/onnx_domain.h"
#include "compiler/onnx/onnx_function.h"
#include "compiler/onnx_file/onnx_subgraph.h"
#include "compiler/onnx_repair/low_bit_weights.h"
#include "compiler/packed/packed_tensor.h"
#include "compiler/onnx_repair/unmerge_parameters.h"

static bool check_versions(LsCtx *cx, const Onnx__ModelProto *p, int opset)
{
    if (!p->has_ir_version || p->ir_version < LS_IR_MIN || p->ir_version > LS_IR_MAX)
        return ls_error(cx, LS_NOWHERE, LS_E_VERSION, "convert the model with the onnx package",
                        "the file has IR version %" PRId64 "; %d to %d are read", p->ir_version,
                        LS_IR_MIN, LS_IR_MAX);
    if (p->graph->n_node == 0 && opset == 0)
        return true;
    if (opset == 0)
        return ls_error(cx, LS_NOWHERE, LS_E_VERSION, NULL,
                        "the model does not say which opset of ai.onnx it uses");
    if (opset < LS_OPSET_MIN || opset > LS_OPSET_MAX)
        return ls_error(
            cx, LS_NOWHERE, LS_E_VERSION,
            opset > LS_OPSET_MAX
                ? "export with a lower opset_version; training exports are best at 13 to 18"
                : "export again, or convert with onnx.version_converter",
            "the model uses opset %d; %d to %d are read", opset, LS_OPSET_MIN, LS_OPSET_MAX);
    return true;
}

static const char *folder_of(LsArena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path ? "/" : ls_arena_printf(a, "%.*s", (int)(slash - path), path);
}

static const char *home_of(LsArena *a, const char *path)
{
    char *real = realpath(path, NULL);
    const char *home = real != NULL ? folder_of(a, ls_arena_strdup(a, real)) : NULL;
    free(real);
    return home;
}

/* A file is read again for a further form of the same program. */
static void keep_uses(LsPackedTensors *of, const LsPackedTensors *before)
{
    for (uint32_t k = 0; k < of->n; k++) {
        const LsPackedTensor *old = ls_packed_named(before, of->tensor[k]->name);
        if (old != NULL && old->used) {
            of->tensor[k]->used = true;
            of->tensor[k]->shape = old->shape;
        }
    }
}

/* An index of a large graph takes memory: editors are opened where they have something to do. */
static bool unpack(LsEditor *u, LsOnnxEdits *few)
{
    u->e = few;
    if (!ls_onnx_has_low_bits(u->g))
        return true;
    ls_edit_index(u);
    const bool ok = ls_onnx_unpack_weights(u);
    ls_edit_finish(u);
    return ok;
}

static bool change_modules(LsEditor *u, const LsImportOptions *o, int opset)
{
    if (o->adapters == NULL && o->npack == 0 && !ls_onnx_has_16_bits(u->g))
        return true;
    ls_edit_index(u);
    const bool ok = ls_pack_modules(u, o->pack, o->npack)
                    && (o->adapters == NULL || ls_adapt(u, o->adapters, opset));
    ls_edit_finish(u);
    return ok;
}

/* Undoes what the exporter changed, then adds the adapters: the structures of a file are changed
 * only once. NULL after diagnostics. */
static const LsOnnxEdits *change(LsCtx *cx, LsOnnxModel *m, const LsImportOptions *o)
{
    const LsDataFolder data = {.dir = m->dir, .home = m->home};
    Onnx__GraphProto *g = m->proto->graph;
    ls_subgraph_hoist(cx->arena, g);
    const LsPackedTensors *before = cx->packed;
    cx->packed = ls_arena_alloc(cx->arena, 1, sizeof *cx->packed);
    cx->packed->arena = cx->arena;
    LsOnnxEdits few = {.unpacked = NULL};
    if (!unpack(&(LsEditor){.cx = cx, .g = g, .s = m->sources, .data = data}, &few))
        return NULL;
    LsOnnxEdits *e =
        (LsOnnxEdits *)ls_onnx_untie(cx, m->proto, data, m->sources, o->tie_identity);
    e->unpacked = few.unpacked;
    e->nunpacked = few.nunpacked;
    LsEditor u = {.cx = cx, .g = g, .s = m->sources, .data = data, .e = e,
                  .weightless = o->weightless};
    const bool ok = change_modules(&u, o, m->opset);
    keep_uses(cx->packed, before);
    return ok ? e : NULL;
}

LsOnnxModel *ls_onnx_open(LsCtx *cx, const char *path, const LsImportOptions *o)
{
    Onnx__ModelProto *p = ls_onnx_read(cx, path);
    if (p == NULL)
        return NULL;
    int opset = ls_onnx_version(p->opset_import, p->n_opset_import, "");
    if (!check_versions(cx, p, opset))
        return NULL;
    LsOnnxModel *m = ls_arena_alloc(cx->arena, 1, sizeof *m);
    *m = (LsOnnxModel){.proto = p, .graph = p->graph, .dir = folder_of(cx->arena, path),
                       .home = home_of(cx->arena, path),
                       .opset = opset, .names = {.arena = cx->arena},
                       .sources = ls_onnx_sources(cx->arena, p->graph)};
    const LsOnnxEdits **edits = ls_onnx_edits(cx);
    if (*edits == NULL)
        *edits = change(cx, m, o);
    m->edits = *edits;
    m->packed = cx->packed;
    return m->edits != NULL && ls_onnx_inline(cx, m) ? m : NULL;
}
