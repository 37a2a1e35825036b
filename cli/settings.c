/* cli/settings.c -- what the options mean: texts to numbers and structs. */
#include "cli/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int bad(const char *option, const char *text, const char *want)
{
    fprintf(stderr, "lowerset: %s: '%s' is not %s\n", option, text, want);
    return LS_EXIT_USAGE;
}

static bool number(const char *text, double *v)
{
    char *end;
    *v = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*v);
}

/* An optional number with a lower bound. */
static int real(const char *option, const char *text, double least, double *v)
{
    if (text != NULL && (!number(text, v) || *v < least))
        return bad(option, text, least >= 0 ? "a number of at least 0" : "a number");
    return 0;
}

/* The place of text in the words, or -1 after a message. NULL: otherwise. */
static int word(const char *option, const char *text, const char *const *words, int otherwise)
{
    if (text == NULL)
        return otherwise;
    for (int k = 0; words[k] != NULL; k++)
        if (strcmp(words[k], text) == 0)
            return k;
    fprintf(stderr, "lowerset: %s: '%s' is none of", option, text);
    for (int k = 0; words[k] != NULL; k++)
        fprintf(stderr, " %s", words[k]);
    fprintf(stderr, "\n");
    return -1;
}

bool ls_budget_parse(const char *text, LsBudget *b)
{
    static const struct { const char *unit; double bytes; } unit[] = {
        {"", 1}, {"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
        {"TiB", 1099511627776.0}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    *b = (LsBudget){LS_BUDGET_NONE, 0};
    if (text == NULL || strcmp(text, "none") == 0)
        return true;
    b->kind = LS_BUDGET_MIN;
    if (strcmp(text, "min") == 0)
        return true;
    char *end;
    b->value = strtod(text, &end);
    if (end == text || !isfinite(b->value) || b->value <= 0)
        return false;
    b->kind = LS_BUDGET_PERCENT;
    if (strcmp(end, "%") == 0)
        return true;
    b->kind = LS_BUDGET_BYTES;
    for (size_t k = 0; k < sizeof unit / sizeof *unit; k++)
        if (strcasecmp(end, unit[k].unit) == 0 && b->value * unit[k].bytes < 9e18) {
            b->value = floor(b->value * unit[k].bytes);
            return true;
        }
    return false;
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

static bool positive(const char *text, const char **end, int64_t *v)
{
    char *stop;
    *v = strtoll(text, &stop, 10);
    *end = stop;
    return stop != text && *v > 0 && *v < INT64_C(1) << 48;
}

static int dims(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    LsDim *dim = ls_arena_alloc(cx->arena, (size_t)o->dim.n, sizeof *dim);
    for (int k = 0; k < o->dim.n; k++) {
        const char *rest;
        if (!split(cx->arena, o->dim.item[k], &dim[k].name, &rest)
            || !positive(rest, &rest, &dim[k].size) || *rest != '\0')
            return bad("--dim", o->dim.item[k], "NAME=SIZE with a size above 0");
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
        bool ok = split(cx->arena, o->shape.item[k], &s[k].input, &rest);
        while (ok && s[k].shape.rank < LS_MAX_RANK) {
            ok = positive(rest, &rest, &s[k].shape.dim[s[k].shape.rank++]);
            if (*rest != 'x')
                break;
            rest++;
        }
        if (!ok || *rest != '\0')
            return bad("--shape", o->shape.item[k], "INPUT=AxBxC with sizes above 0");
    }
    im->shape = s;
    im->nshape = o->shape.n;
    return 0;
}

static int import_options(LsCtx *cx, const LsOptions *o, LsImportOptions *im)
{
    static const char *const bn[] = {"file", "train", "frozen", NULL};
    static const char *const var[] = {"onnx", "torch", NULL};
    int mode = word("--bn", o->bn, bn, LS_BN_FILE), torch = word("--bn-var", o->bn_var, var, 0);
    if (mode < 0 || torch < 0)
        return LS_EXIT_USAGE;
    im->bn = (LsBnMode)mode;
    im->bn_var_torch = torch == 1;
    im->batch = o->batch;
    im->freeze = o->freeze.item;
    im->nfreeze = o->freeze.n;
    im->train = o->train.item;
    im->ntrain = o->train.n;
    im->tie_identity = o->tie;
    int code = dims(cx, o, im);
    return code != 0 ? code : shapes(cx, o, im);
}

static int class_weights(LsCtx *cx, const LsOptions *o, LsLossOptions *loss)
{
    float *w = ls_arena_alloc(cx->arena, strlen(o->class_weights) + 1, sizeof *w);
    for (const char *at = o->class_weights; ; at++) {
        char *end;
        double v = strtod(at, &end);
        if (end == at || !(v >= 0) || !isfinite(v) || (*end != ',' && *end != '\0'))
            return bad("--class-weights", o->class_weights, "a list of numbers like 1,0.5,2");
        w[loss->nclass++] = (float)v;
        if (*(at = end) == '\0')
            break;
    }
    loss->class_weight = w;
    return 0;
}

static int class_axis(const LsOptions *o, LsLossOptions *loss)
{
    char *end = "";
    long axis = o->class_axis != NULL ? strtol(o->class_axis, &end, 10) : 0;
    if (o->class_axis == NULL)
        return 0;
    if (end == o->class_axis || *end != '\0' || axis == 0 || axis >= LS_MAX_RANK || axis <= -LS_MAX_RANK)
        return bad("--class-axis", o->class_axis, "an axis such as 1 or -1; axis 0 has the samples");
    if (loss->kind == LS_LOSS_CE) {
        loss->axis = (int)axis;
        return 0;
    }
    fprintf(stderr, "lowerset: --class-axis is for --loss=ce, and the loss is %s\n", o->loss);
    return LS_EXIT_USAGE;
}

static int loss_options(LsCtx *cx, const LsOptions *o, LsLossOptions *loss)
{
    static const char *const kind[] = {"graph", "ce", "mse", "l1", "bce", NULL};
    int k = word("--loss", o->loss, kind, LS_LOSS_CE);
    double ignore = 0;
    if (k < 0)
        return LS_EXIT_USAGE;
    loss->kind = (LsLossKind)k;
    loss->output = o->loss_input;
    loss->label = o->label;
    int code = real("--label-smoothing", o->smoothing, 0, &loss->smoothing);
    code = code != 0 ? code : real("--ignore-index", o->ignore, -9e15, &ignore);
    if (code == 0 && loss->smoothing > 1)
        code = bad("--label-smoothing", o->smoothing, "a number from 0 to 1");
    loss->has_ignore = o->ignore != NULL;
    loss->ignore = (int64_t)ignore;
    if (code == 0 && o->class_weights != NULL)
        code = class_weights(cx, o, loss);
    return code;
}

/* One "key=value" or flag of --optimizer. */
static bool setting(LsOptimizerOptions *op, const char *key, const char *value)
{
    struct { const char *key; double *at; } row[] = {
        {"momentum", &op->momentum}, {"beta1", &op->beta1}, {"beta2", &op->beta2},
        {"eps", &op->eps}, {"wd", &op->decay}, {"lr", NULL}};
    double v;
    if (value == NULL)
        return strcmp(key, "nesterov") == 0 && (op->nesterov = true);
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (strcmp(key, row[k].key) == 0 && number(value, &v) && v >= 0) {
            if (row[k].at != NULL)
                *row[k].at = v;
            return true;
        }
    return false;
}

static int optimizer_options(LsCtx *cx, const LsOptions *o, LsOptimizerOptions *op)
{
    static const char *const kind[] = {"sgd", "adam", "adamw", "none", NULL};
    char *spec =
        ls_arena_strdup(cx->arena, o->optimizer != NULL ? o->optimizer : "sgd:momentum=0.9");
    char *rest = strchr(spec, ':'), *save = NULL;
    if (rest != NULL)
        *rest++ = '\0';
    int k = word("--optimizer", spec, kind, 0);
    if (k < 0)
        return LS_EXIT_USAGE;
    *op = (LsOptimizerOptions){.kind = (LsOptimizerKind)k,
                               .beta1 = 0.9,
                               .beta2 = 0.999,
                               .eps = 1e-8,
                               .decay = k == LS_ADAMW ? 0.01 : 0,
                               .accumulate = 1};
    for (char *at = rest != NULL ? strtok_r(rest, ",", &save) : NULL; at != NULL;
         at = strtok_r(NULL, ",", &save)) {
        char *value = strchr(at, '=');
        if (value != NULL)
            *value++ = '\0';
        if (!setting(op, at, value))
            return bad("--optimizer", o->optimizer,
                       "like sgd:momentum=0.9,nesterov,wd=1e-4,lr=0.1 or "
                       "adam:beta1=0.9,beta2=0.999,eps=1e-8");
    }
    int code = real("--clip-norm", o->clip_norm, 0, &op->clip_norm);
    code = code != 0 ? code : real("--clip-value", o->clip_value, 0, &op->clip_value);
    if (o->accumulate > 1)
        op->accumulate = (int)o->accumulate;
    return code;
}

int ls_options_pipeline(LsCtx *cx, const LsOptions *o, LsPipelineOptions *p)
{
    *p = (LsPipelineOptions){.dump = o->dump_pass};
    int code = import_options(cx, o, &p->import);
    code = code != 0 ? code : loss_options(cx, o, &p->loss);
    code = code != 0 ? code : class_axis(o, &p->loss);
    return code != 0 ? code : optimizer_options(cx, o, &p->optimizer);
}

int ls_options_planning(const LsOptions *o, LsPlanOptions *want)
{
    enum { MOST = 10000 };      /* percent */
    want->strategy = o->strategy;
    want->no_inplace = o->no_inplace;
    want->no_offsets = o->no_offsets;
    want->prove = o->prove;
    if (o->plan_time != NULL && (!number(o->plan_time, &want->seconds) || want->seconds <= 0))
        return bad("--plan-time", o->plan_time, "a number of seconds above 0");
    if (o->plan_effort > MOST) {
        fprintf(stderr, "lowerset: --plan-effort: at most %d percent\n", MOST);
        return LS_EXIT_USAGE;
    }
    want->effort = (uint32_t)o->plan_effort;
    return 0;
}

int ls_options_hints(const LsOptions *o, LsHints *hints)
{
    *hints = (LsHints){.keep = o->keep.item, .nkeep = o->keep.n,
                       .forget = o->forget.item, .nforget = o->forget.n};
    if (o->recompute != NULL && !ls_recompute_parse(o->recompute, &hints->recompute))
        return bad("--recompute", o->recompute, "one of auto none cheap conv-saved all");
    return 0;
}

int ls_options_tolerance(const LsOptions *o, double *part)
{
    char *end = "";
    *part = o->tolerance != NULL ? strtod(o->tolerance, &end) / 100 : 0;
    if (end == o->tolerance || (strcmp(end, "%") != 0 && *end != '\0') || !(*part >= 0)
        || !isfinite(*part))
        return bad("--tolerance", o->tolerance, "a percentage of at least 0, like 0.5%");
    return 0;
}

double ls_options_lr(const LsOptions *o)
{
    double lr;
    if (o->lr != NULL && number(o->lr, &lr))
        return lr;
    const char *at = o->optimizer != NULL ? strstr(o->optimizer, "lr=") : NULL;
    if (at != NULL && (lr = strtod(at + 3, NULL)) > 0)
        return lr;
    return o->optimizer != NULL && strncmp(o->optimizer, "adam", 4) == 0 ? 1e-3 : 0.01;
}
