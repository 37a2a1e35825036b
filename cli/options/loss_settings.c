/* cli/options/loss_settings.c -- --loss, and the options that only a cross-entropy has. */
#include "cli/options/settings.h"

#include "cli/options/loss_spec.h"
#include "compiler/passes/loss_term.h"
#include "runtime/base/number.h"
#include "cli/options/option_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int class_weights(LsCtx *cx, const LsOptions *o, LsLossOptions *loss)
{
    float *w = ls_arena_alloc(cx->arena, strlen(o->loss.class_weights) + 1, sizeof *w);
    for (const char *at = o->loss.class_weights; ; at++) {
        char *end;
        double v = strtod(at, &end);
        if (end == at || !(v >= 0) || !isfinite(v) || (*end != ',' && *end != '\0'))
            return ls_options_bad("--class-weights", o->loss.class_weights,
                                  "a list of numbers like 1,0.5,2");
        w[loss->nclass++] = (float)v;
        if (*(at = end) == '\0')
            break;
    }
    float sum = 0;
    for (int64_t k = 0; k < loss->nclass; k++)
        sum += w[k];
    if (!(sum > 0) || !isfinite(sum))
        return ls_options_bad("--class-weights", o->loss.class_weights,
                              "a list with a finite sum above 0");
    loss->class_weight = w;
    return 0;
}

static int class_axis(const LsOptions *o, LsLossOptions *loss)
{
    char *end = "";
    long axis = o->loss.class_axis != NULL ? strtol(o->loss.class_axis, &end, 10) : 0;
    if (o->loss.class_axis == NULL)
        return 0;
    if (end == o->loss.class_axis || *end != '\0' || axis == 0 || axis >= LS_MAX_RANK ||
        axis <= -LS_MAX_RANK)
        return ls_options_bad("--class-axis", o->loss.class_axis,
                              "an axis such as 1 or -1; axis 0 has the samples");
    loss->axis = (int)axis;
    return 0;
}

static bool has_kind(const LsLossOptions *loss, LsLossKind kind)
{
    for (uint32_t k = 0; k < loss->npart; k++)
        if (loss->part[k].kind == kind)
            return true;
    return false;
}

/* Checks options that only a cross-entropy has. 0 or the exit code. */
static int cross_entropy_options(LsCtx *cx, const LsOptions *o, LsLossOptions *loss)
{
    const struct {
        const char *option, *text;
        bool nll, soft;
    } row[] = {{"--label-smoothing", o->loss.smoothing, false, true},
               {"--ignore-index", o->loss.ignore, true, false},
               {"--class-weights", o->loss.class_weights, true, true},
               {"--class-axis", o->loss.class_axis, true, true},
               {"--label-shape", o->loss.label_shape, true, true}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (row[k].text != NULL && !has_kind(loss, LS_LOSS_CE)
            && !(row[k].nll && has_kind(loss, LS_LOSS_NLL))
            && !(row[k].soft && has_kind(loss, LS_LOSS_SOFT_CE))) {
            fprintf(stderr, "lowerset: %s is for --loss=ce%s%s, but the loss is %s\n",
                    row[k].option, row[k].nll ? " and nll" : "",
                    row[k].soft ? " and soft_ce" : "", o->loss.spec);
            return LS_EXIT_USAGE;
        }
    int code = ls_options_real("--label-smoothing", o->loss.smoothing, 0, 1, &loss->smoothing);
    loss->has_ignore = o->loss.ignore != NULL;
    if (code == 0 && o->loss.ignore != NULL
        && !ls_number_whole(o->loss.ignore, INT32_MIN, INT32_MAX, &loss->ignore))
        code = ls_options_bad("--ignore-index", o->loss.ignore, "a whole number, such as -100");
    if (code == 0 && o->loss.class_weights != NULL)
        code = class_weights(cx, o, loss);
    if (code == 0 && o->loss.label_shape != NULL &&
        !ls_settings_shape(o->loss.label_shape, &loss->label_shape))
        code = ls_options_bad("--label-shape", o->loss.label_shape, "AxBx... with sizes above 0");
    if (code == 0 && o->loss.label_shape != NULL && ls_options_parts(o) > 1) {
        if (loss->label_shape.dim[0] % ls_options_parts(o) != 0)
            return ls_options_bad("--label-shape", o->loss.label_shape,
                                  "a shape whose samples divide into the --microbatches");
        loss->label_shape.dim[0] /= ls_options_parts(o);
    }
    return code != 0 ? code : class_axis(o, loss);
}

int ls_settings_loss(LsCtx *cx, const LsOptions *o, LsLossOptions *loss)
{
    char why[300];
    if (!ls_loss_parse(cx->arena, o->loss.spec != NULL ? o->loss.spec : "ce", loss, why,
                       sizeof why)) {
        fprintf(stderr, "lowerset: --loss: %s\n", why);
        return LS_EXIT_USAGE;
    }
    loss->label = o->loss.label;
    if (o->loss.input != NULL && (loss->npart > 1 || loss->part[0].output[0] != NULL)) {
        fprintf(stderr,
                "lowerset: --loss-input names the output of a single loss; --loss=%s names the "
                "outputs of its "
                "losses itself (KIND:OUTPUT)\n",
                o->loss.spec);
        return LS_EXIT_USAGE;
    }
    if (o->loss.input != NULL)
        loss->part[0].output[0] = o->loss.input;
    bool target = false;
    for (uint32_t k = 0; k < loss->npart; k++)
        target |= ls_loss_has_target(loss->part[k].kind);
    if (!target && o->loss.label != NULL) {
        fprintf(stderr,
                "lowerset: --label names the target of an added loss; --loss=%s has none%s\n",
                o->loss.spec,
                has_kind(loss, LS_LOSS_GRAPH) ? ", as the target is an input of the model" : "");
        return LS_EXIT_USAGE;
    }
    return cross_entropy_options(cx, o, loss);
}
