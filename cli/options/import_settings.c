/* cli/options/import_settings.c -- what options say about the import of a model: sizes, modes, what is trained. */
#include "cli/options/settings.h"

#include "cli/options/option_values.h"

#include <stdlib.h>
#include <string.h>

static int twice(const char *option, const char *first, const char *second)
{
    fprintf(stderr, "lowerset: %s is given twice for one name: '%s' and '%s'\n", option, first, second);
    return LS_EXIT_USAGE;
}

/* "NAME=REST" split in the arena; false: no '='. */
static bool split(LsArena *a, const char *text, const char **name, const char **rest)
{
    const char *eq = strrchr(text, '=');
    if (eq == NULL || eq == text)
        return false;
    char *copy = ls_arena_strdup(a, text);
    copy[eq - text] = '\0';
    *name = copy;
    *rest = copy + (eq - text) + 1;
    return true;
}

static int dims(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    LsDim *dim = ls_arena_alloc(cx->arena, (size_t)o->dim.n, sizeof *dim);
    for (int k = 0; k < o->dim.n; k++) {
        const char *rest;
        if (!split(cx->arena, o->dim.item[k], &dim[k].name, &rest)
            || !ls_options_count(rest, &rest, &dim[k].size) || *rest != '\0')
            return ls_options_bad("--dim", o->dim.item[k], "NAME=SIZE with a size above 0");
        for (int i = 0; i < k; i++)
            if (strcmp(dim[i].name, dim[k].name) == 0)
                return twice("--dim", o->dim.item[i], o->dim.item[k]);
    }
    im->dim = dim;
    im->ndim = o->dim.n;
    return 0;
}

static int shapes(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    LsShapeBinding *s = ls_arena_alloc(cx->arena, (size_t)o->shape.n, sizeof *s);
    for (int k = 0; k < o->shape.n; k++) {
        const char *rest;
        if (!split(cx->arena, o->shape.item[k], &s[k].input, &rest) || !ls_settings_shape(rest, &s[k].shape))
            return ls_options_bad("--shape", o->shape.item[k], "INPUT=AxBxC with sizes above 0");
        for (int i = 0; i < k; i++)
            if (strcmp(s[i].input, s[k].input) == 0)
                return twice("--shape", o->shape.item[i], o->shape.item[k]);
    }
    im->shape = s;
    im->nshape = o->shape.n;
    return 0;
}

int ls_settings_import(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    static const char *const bn[] = {"file", "train", "frozen", NULL};
    static const char *const var[] = {"onnx", "torch", NULL};
    static const char *const drop[] = {"file", "on", "off", NULL};
    static const char *const mixed[] = {"refuse", "own", NULL};
    int mode = ls_options_word("--bn", o->bn, bn, LS_BN_FILE), torch = ls_options_word("--bn-var", o->bn_var, var, 0);
    int dropout = ls_options_word("--dropout", o->dropout, drop, LS_DROPOUT_FILE);
    const int own = ls_options_word("--mixed-parts", o->mixed_parts, mixed, 0);
    if (mode < 0 || torch < 0 || dropout < 0 || own < 0)
        return LS_EXIT_USAGE;
    if (o->mixed_parts != NULL && ls_options_parts(o) < 2) {
        fprintf(stderr, "lowerset: --mixed-parts: a batch has no parts without --microbatches, --ranks or --stages\n");
        return LS_EXIT_USAGE;
    }
    im->own_parts = own == 1;
    if (o->only.n > 0 && o->train.n > 0) {
        fprintf(stderr, "lowerset: --train-only says all that is trained: leave --train out, or name its tensors by --train-only\n");
        return LS_EXIT_USAGE;
    }
    im->bn = (LsBnMode)mode;
    im->dropout = (LsDropoutMode)dropout;
    im->bn_var_torch = torch == 1;
    im->bn_var_asked = o->bn_var != NULL;
    im->verbose = o->verbose;
    im->batch = o->batch;
    im->parts = ls_options_parts(o);
    im->freeze = o->freeze.item;
    im->nfreeze = o->freeze.n;
    im->train = o->train.item;
    im->ntrain = o->train.n;
    im->only = o->only.item;
    im->nonly = o->only.n;
    im->stop = o->stop.item;
    im->nstop = o->stop.n;
    im->tie_identity = o->tie;
    int code = dims(cx, o, im);
    return code != 0 ? code : shapes(cx, o, im);
}
