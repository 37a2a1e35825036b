/* compiler/onnx/onnx_model.c -- opening a model: versions, and its nodes in one flat list. */
#include "compiler/onnx/onnx_import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *ls_onnx_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int ls_onnx_version(Onnx__OperatorSetIdProto *const *list, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ls_onnx_domain(list[i]->domain), ls_onnx_domain(domain)) == 0) {
            int64_t v = list[i]->version;
            return v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : (int)v;
        }
    return 0;
}

LsWhere ls_flat_where(const LsOnnxFlat *f)
{
    return (LsWhere){f->index, f->name, ls_text(f->proto->op_type)};
}

bool ls_flat_is(const LsOnnxFlat *f, const char *op)
{
    return ls_onnx_domain(f->proto->domain)[0] == '\0' &&
           strcmp(ls_text(f->proto->op_type), op) == 0;
}

const char *ls_flat_op_name(LsArena *a, const LsOnnxFlat *f)
{
    const char *domain = ls_onnx_domain(f->proto->domain), *op = ls_text(f->proto->op_type);
    return domain[0] != '\0' ? ls_arena_printf(a, "%s.%s", domain, op) : op;
}

const LsOnnxOp *ls_flat_row(const LsOnnxFlat *f)
{
    const LsOnnxOp *row = ls_onnx_find(ls_text(f->proto->op_type));
    bool ours = ls_onnx_domain(f->proto->domain)[0] == '\0';
    return ours && row != NULL && f->version >= row->since ? row : NULL;
}

/* Identity and sequences are the importer's own. */
bool ls_flat_supported(const LsOnnxFlat *f)
{
    return ls_flat_row(f) != NULL || ls_flat_is(f, "Identity") || ls_onnx_sequence_op(f);
}

bool ls_onnx_makes_weight(const LsOnnxModel *m, const LsOnnxFlat *f)
{
    if (f->inner || f->proto->n_output != 1)
        return false;
    if (ls_flat_is(f, "Constant"))
        return true;
    if (!ls_flat_is(f, "ConstantOfShape") || f->proto->n_input != 1)
        return false;
    int64_t maker = m->maker[ls_names_find(&m->names, ls_text(f->proto->input[0]))];
    return maker == LS_MADE_INITIALIZER || (maker >= 0 && ls_flat_is(&m->node[maker], "Constant"));
}

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

LsOnnxModel *ls_onnx_open(LsCtx *cx, const char *path, bool tie)
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
    const LsOnnxEdits **edits = ls_onnx_edits(cx);      /* the same file is changed once */
    if (*edits == NULL)
        *edits = ls_onnx_untie(cx, p, (LsDataFolder){.dir = m->dir, .home = m->home}, m->sources,
                               tie);
    m->edits = *edits;
    return ls_onnx_inline(cx, m) ? m : NULL;
}
