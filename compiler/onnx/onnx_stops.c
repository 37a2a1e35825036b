/* compiler/onnx/onnx_stops.c -- see onnx_stops.h.
 *
 * A stop is a DETACH behind the node: every later pass sees an operator whose gradient is zero, and
 * the value keeps its name. Patterns, which run before the gradient, know no DETACH and match
 * nothing across it. */
#include "compiler/onnx/onnx_stops.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "compiler/adapters/adapters.h"
#include "compiler/fold/append.h"
#include "compiler/onnx/import_state.h"
#include "compiler/onnx_file/onnx_metadata.h"

bool ls_onnx_told_to_stop(const LsImportOptions *o, const char *name)
{
    for (int k = 0; k < o->nstop; k++)
        if (fnmatch(o->stop[k], name, 0) == 0)
            return true;
    return o->adapters != NULL && ls_adapters_stop(o->adapters, name);
}

static const char target[] = "target=torch.ops.aten.detach";

/* Identity(x), traced from x.detach(). The last of its classes is that of the call. */
static bool is_detach(LsArena *a, const Onnx__NodeProto *p)
{
    const char *call = ls_onnx_meta(a, &p->base, LS_META_CALL),
               *class = ls_onnx_meta(a, &p->base, LS_META_CLASSES), *name, *last = "";
    if (call != NULL)
        return strstr(call, target) != NULL;
    while (class != NULL && (name = ls_meta_item(a, &class)) != NULL)
        last = name;
    return strncmp(last, "aten.detach", 11) == 0;
}

static bool asked(const LsImportOptions *o, const LsOnnxFlat *f, size_t k)
{
    const char *name = ls_text(f->proto->output[k]);
    return name[0] != '\0' && (ls_onnx_told_to_stop(o, name) || ls_onnx_told_to_stop(o, f->name));
}

static LsStopsBy stops(LsArena *a, const LsImportOptions *o, const LsOnnxFlat *f, size_t k)
{
    if ((o->nstop > 0 || o->adapters != NULL) && asked(o, f, k))
        return LS_STOPS_ASKED;
    return ls_flat_is(f, "Identity") && is_detach(a, f->proto) ? LS_STOPS_BY_NOTES : LS_STOPS_NOT;
}

LsStopsBy ls_onnx_stops(LsArena *a, const LsImportOptions *o, const LsOnnxFlat *f)
{
    LsStopsBy by = LS_STOPS_NOT;
    for (size_t k = 0; k < f->proto->n_output && by == LS_STOPS_NOT; k++)
        by = stops(a, o, f, k);
    return by;
}

static void note(LsImport *im, const char *name, bool asked)
{
    LsDecisions *d = im->decisions;
    d->stop = ls_arena_grow(im->cx->arena, d->stop, d->nstop, d->nstop + 1, sizeof *d->stop,
                            &d->cap_stop);
    d->stop[d->nstop++] = (LsStopDecision){name, asked};
}

bool ls_onnx_stop(LsImport *im, const LsOnnxFlat *f, LsValueId out[])
{
    LsGraph *g = im->g;
    for (size_t k = 0; k < f->proto->n_output; k++) {
        const LsStopsBy by = stops(im->cx->arena, im->o, f, k);
        const char *name = ls_text(f->proto->output[k]);
        if (by == LS_STOPS_NOT)
            continue;
        if (!ls_is(out[k]) && name[0] != '\0'
            && im->value[ls_names_find(&im->m->names, name)].list != NULL)
            return ls_error(im->cx, ls_flat_where(f), LS_E_UNSUPPORTED,
                            "name the values that read its items",
                            "a gradient cannot be stopped at '%s', which is a sequence", name);
        if (!ls_is(out[k]) || ls_type(g, out[k]) != LS_REAL)
            continue;
        note(im, name, by == LS_STOPS_ASKED);
        if (g->value[out[k].i].kind == LS_V_CONST)
            continue;           /* told_to_freeze keeps it from being trained */
        out[k] = ls_append1(im->cx, g, LS_OP_DETACH, out[k], NULL);
        if (!ls_is(out[k]))
            return false;
        g->value[out[k].i].stopped = true;
    }
    return true;
}

static bool is_read(const LsImport *im, const char *glob)
{
    const LsOnnxModel *m = im->m;
    for (uint32_t i = 1; i <= m->names.n; i++)
        if (fnmatch(glob, m->names.name[i], 0) == 0)
            return true;
    for (uint32_t i = 0; i < m->nnode; i++)
        if (fnmatch(glob, m->node[i].name, 0) == 0)
            return true;
    return false;
}

void ls_onnx_check_stops(LsImport *im)
{
    for (int k = 0; k < im->o->nstop; k++)
        if (!is_read(im, im->o->stop[k]))
            ls_error(im->cx, LS_NOWHERE, LS_E_OPTION, "it is a pattern of names of values or nodes",
                     "--stop-gradient %s matches no value and no node", im->o->stop[k]);
}

const char *ls_stops_text(LsArena *a, const LsDecisions *d, bool asked)
{
    enum { SHOWN = 3 };
    uint32_t n = 0;
    const char *names = "";
    for (uint32_t k = 0; k < d->nstop; k++) {
        if (d->stop[k].asked != asked)
            continue;
        if (n < SHOWN)
            names = ls_arena_printf(a, "%s%s'%s'", names, n > 0 ? ", " : "", d->stop[k].value);
        n++;
    }
    return n == 0 ? NULL
                  : ls_arena_printf(a, "the gradient%s of %u value%s %s stopped %s (%s%s)",
                                    n > 1 ? "s" : "", n, n > 1 ? "s" : "", n > 1 ? "are" : "is",
                                    asked ? "by --stop-gradient"
                                          : "as in the module, by the exporter's notes",
                                    names, n > SHOWN ? ", ..." : "");
}

/* The next %detach or %detach_3 among the arguments of a traced call; NULL: none. */
static const char *detach_argument(LsArena *a, const char **at)
{
    static const char name[] = "%detach";
    for (const char *p; (p = strstr(*at, name)) != NULL;) {
        size_t n = sizeof name - 1;
        if (p[n] == '_' && isdigit((unsigned char)p[n + 1]))
            for (n++; isdigit((unsigned char)p[n]);)
                n++;
        *at = p + n;
        if (!isalnum((unsigned char)p[n]) && p[n] != '_')
            return ls_arena_printf(a, "%.*s", (int)n, p);
    }
    return NULL;
}

/* The call's own name, as others read it: "%detach : [num_users=1] = ..." */
static const char *result_of(LsArena *a, const char *call)
{
    const char *p = strchr(call, '%');
    return p != NULL ? ls_arena_printf(a, "%.*s", (int)strcspn(p, " :"), p) : "";
}

void ls_onnx_hint_lost_stops(LsImport *im)
{
    LsArena *a = im->cx->arena;
    LsNames kept = {.arena = a}, read = {.arena = a};
    const char *reader = NULL, *name;
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const LsOnnxFlat *f = &im->m->node[i];
        const char *call = ls_onnx_meta(a, &f->proto->base, LS_META_CALL);
        if (call != NULL && ls_flat_is(f, "Identity") && is_detach(a, f->proto))
            ls_names_add(&kept, result_of(a, call));
    }
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const char *call = ls_onnx_meta(a, &im->m->node[i].proto->base, LS_META_CALL);
        const char *at = call != NULL ? strstr(call, "args = (") : NULL;
        while (at != NULL && (name = detach_argument(a, &at)) != NULL)
            if (ls_names_find(&kept, name) == 0 && ls_names_add(&read, name) == 1 && reader == NULL)
                reader = im->m->node[i].name;
    }
    if (read.n > 0 && im->o->nstop == 0)
        ls_warn(im->cx, LS_NOWHERE,
                "export with torch.onnx.export(model.train(), args, file, dynamo=True, "
                "optimize=False), which keeps them, or "
                "name the values by --stop-gradient",
                "the module stops %u gradient%s by detach(), and the exporter dropped %s (node "
                "'%s' reads one): where anything "
                "before it is trained, the training is another one",
                read.n, read.n > 1 ? "s" : "", read.n > 1 ? "them" : "it", reader);
}
