/* cli/options/import_settings.c -- what options say about the import of a model: sizes, modes, what
 * is trained. */
#include "cli/options/settings.h"

#include "cli/options/option_values.h"
#include "compiler/adapters/adapters.h"
#include "compiler/adapters/pack_modules.h"

#include <stdlib.h>
#include <string.h>

static int twice(const char *option, const char *first, const char *second)
{
    fprintf(stderr, "lowerset: %s is given twice for one name: '%s' and '%s'\n", option, first,
            second);
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
    LsDim *dim = ls_arena_alloc(cx->arena, (size_t)o->sizes.dim.n, sizeof *dim);
    for (int k = 0; k < o->sizes.dim.n; k++) {
        const char *rest;
        if (!split(cx->arena, o->sizes.dim.item[k], &dim[k].name, &rest)
            || !ls_options_count(rest, &rest, &dim[k].size) || *rest != '\0')
            return ls_options_bad("--dim", o->sizes.dim.item[k], "NAME=SIZE with a size above 0");
        for (int i = 0; i < k; i++)
            if (strcmp(dim[i].name, dim[k].name) == 0)
                return twice("--dim", o->sizes.dim.item[i], o->sizes.dim.item[k]);
    }
    im->dim = dim;
    im->ndim = o->sizes.dim.n;
    return 0;
}

static int shapes(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    LsShapeBinding *s = ls_arena_alloc(cx->arena, (size_t)o->sizes.shape.n, sizeof *s);
    for (int k = 0; k < o->sizes.shape.n; k++) {
        const char *rest;
        if (!split(cx->arena, o->sizes.shape.item[k], &s[k].input, &rest) ||
            !ls_settings_shape(rest, &s[k].shape))
            return ls_options_bad("--shape", o->sizes.shape.item[k],
                                  "INPUT=AxBxC with sizes above 0");
        for (int i = 0; i < k; i++)
            if (strcmp(s[i].input, s[k].input) == 0)
                return twice("--shape", o->sizes.shape.item[i], o->sizes.shape.item[k]);
    }
    im->shape = s;
    im->nshape = o->sizes.shape.n;
    return 0;
}

static int adapters(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    const char *lora = o->trained.lora, *dir = o->trained.adapter;
    if (lora != NULL && dir != NULL) {
        fprintf(stderr,
                "lowerset: --lora and --adapter: the folder's adapter_config.json says what --lora "
                "would; leave one out\n");
        return LS_EXIT_USAGE;
    }
    if (lora == NULL && dir == NULL && o->trained.merge) {
        fprintf(stderr,
                "lowerset: --merge: there are no adapters; --lora or --adapter adds them\n");
        return LS_EXIT_USAGE;
    }
    if (lora == NULL && dir == NULL)
        return 0;
    LsAdapterSpec *spec = NULL;
    const LsAdapterSpec **further;
    const int64_t members = o->ensemble.members;
    if (!ls_adapter_members(cx, lora, dir, members, &spec, &further))
        return LS_EXIT_USAGE;
    im->adapters = ls_adapters_new(cx->arena, spec);
    im->adapters->further = further;
    im->adapters->nfurther = further != NULL ? (uint32_t)(members - 1) : 0;
    im->adapters->merge = o->trained.merge;
    return 0;
}

static int packed(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    const LsList *of = &o->trained.quantize;
    LsPackChoice *choice = ls_arena_alloc(cx->arena, (size_t)of->n + 1, sizeof *choice);
    for (int k = 0; k < of->n; k++)
        if (!ls_pack_option(cx, of->item[k], &choice[k]))
            return LS_EXIT_USAGE;
    im->pack = choice;
    im->npack = (uint32_t)of->n;
    return 0;
}

int ls_settings_import(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    static const char *const bn[] = {"file", "train", "frozen", NULL};
    static const char *const var[] = {"onnx", "torch", NULL};
    static const char *const drop[] = {"file", "on", "off", NULL};
    static const char *const mixed[] = {"refuse", "own", NULL};
    int mode = ls_options_word("--bn", o->norms.bn, bn, LS_BN_FILE),
        torch = ls_options_word("--bn-var", o->norms.bn_var, var, 0);
    int dropout = ls_options_word("--dropout", o->norms.dropout, drop, LS_DROPOUT_FILE);
    const int own = ls_options_word("--mixed-parts", o->parts.mixed, mixed, 0);
    if (mode < 0 || torch < 0 || dropout < 0 || own < 0)
        return LS_EXIT_USAGE;
    if (o->parts.mixed != NULL && ls_options_parts(o) < 2) {
        fprintf(stderr, "lowerset: --mixed-parts: a batch has no parts without --microbatches, "
                        "--ranks or --stages\n");
        return LS_EXIT_USAGE;
    }
    im->own_parts = own == 1;
    if (o->trained.only.n > 0 && o->trained.train.n > 0) {
        fprintf(stderr, "lowerset: --train-only says all that is trained: leave --train out, or "
                        "name its tensors by --train-only\n");
        return LS_EXIT_USAGE;
    }
    im->bn = (LsBnMode)mode;
    im->dropout = (LsDropoutMode)dropout;
    im->bn_var_torch = torch == 1;
    im->bn_var_asked = o->norms.bn_var != NULL;
    im->verbose = o->output.verbose;
    im->batch = o->sizes.batch;
    im->parts = ls_options_parts(o);
    im->freeze = o->trained.freeze.item;
    im->nfreeze = o->trained.freeze.n;
    im->train = o->trained.train.item;
    im->ntrain = o->trained.train.n;
    im->only = o->trained.only.item;
    im->nonly = o->trained.only.n;
    im->stop = o->trained.stop.item;
    im->nstop = o->trained.stop.n;
    im->tie_identity = o->trained.tie;
    int code = adapters(cx, o, im);
    code = code != 0 ? code : packed(cx, o, im);
    code = code != 0 ? code : dims(cx, o, im);
    return code != 0 ? code : shapes(cx, o, im);
}
