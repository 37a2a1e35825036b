/* compiler/onnx/onnx_export_advice.c -- recognises exports that load well and train badly.
 *
 * An evaluation-mode export folds batch norms into convolutions (weight and bias get generated
 * names such as onnx::Conv_27), drops dropout, and merges parameters with equal initial values
 * through Identity nodes. */
#include "compiler/onnx/onnx_export_advice.h"

#include "compiler/onnx/onnx_caches.h"
#include "compiler/onnx/onnx_moving_buffers.h"
#include "compiler/onnx/onnx_stops.h"

#include <string.h>

static const char training_call[] =
    "torch.onnx.export(model, args, file, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False), with dynamo=False where PyTorch knows it";
static const char plain_call[] =
    "export in training mode and unoptimised: torch.onnx.export(model.train(), args, file, "
    "dynamo=True, optimize=False)";

/* Each name with its origin, 'copy' WORD 'origin', or all names alone; only some of many, unless
 * every name is wanted. */
static const char *listed(const LsImport *im, const LsUntied *list, uint32_t n, const char *word)
{
    enum { SOME = 3 };
    LsArena *a = im->cx->arena;
    const uint32_t most = im->o->verbose || n <= SOME + 1 ? n : SOME;
    const char *text = "";
    for (uint32_t k = 0; k < most; k++) {
        const char *from = list[k].from, *quote = from != NULL && from[0] != '\'' ? "'" : "";
        text = ls_arena_printf(a, "%s%s'%s'", text, k > 0 ? ", " : "", list[k].name);
        if (from != NULL)
            text = ls_arena_printf(a, "%s %s %s%s%s", text, word, quote, from, quote);
    }
    return most == n ? text : ls_arena_printf(a, "%s and %u more, which -v lists", text, n - most);
}

/* ", ..." behind the first of several names. */
static const char *more(uint32_t n) { return n > 1 ? ", ..." : ""; }

static bool all_digits(const char *s)
{
    return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

/* A generated name: onnx::Conv_27, or a bare number from exporters before 2022. */
static bool made_up(const char *name)
{
    static const char prefix[] = "onnx::Conv_";
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        return all_digits(name + sizeof prefix - 1);
    return all_digits(name);
}

static bool is_initializer(const LsOnnxModel *m, const char *name)
{
    uint32_t id = ls_names_find(&m->names, name);
    return id != 0 && m->maker[id] == LS_MADE_INITIALIZER;
}

static void hint_folded(LsImport *im)
{
    uint32_t folded = 0;
    const LsOnnxFlat *first = NULL;
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const LsOnnxFlat *f = &im->m->node[i];
        const Onnx__NodeProto *p = f->proto;
        if (strcmp(ls_text(p->op_type), "BatchNormalization") == 0)
            return;
        if (strcmp(ls_text(p->op_type), "Conv") != 0 || p->n_input < 3)
            continue;
        if (made_up(p->input[1]) && made_up(p->input[2]) && is_initializer(im->m, p->input[1])) {
            first = folded++ == 0 ? f : first;
        }
    }
    if (folded > 0)
        ls_warn(im->cx, ls_flat_where(first), training_call,
                "%u convolution%s weight and bias under names that the exporter made up ('%s', "
                "'%s'), and the file has "
                "no batch norm: an export in evaluation mode has probably folded batch norms into "
                "convolutions. The "
                "model trains without them, and under these names",
                folded, folded > 1 ? "s have" : " has", first->proto->input[1],
                first->proto->input[2]);
}

/* Weights that folding only transposed train as before; constants computed from parameters do
 * not. */
static void hint_made_up(LsImport *im)
{
    if (im->nmade_up > 0)
        ls_warn(im->cx, LS_NOWHERE, training_call,
                "%u tensor%s under names that the exporter made up when it folded constants "
                "('%s'%s): a tensor "
                "that it computed from parameters trains as in the module only if it was just "
                "transposed or "
                "reshaped",
                im->nmade_up, im->nmade_up > 1 ? "s are" : " is", im->made_up, more(im->nmade_up));
}

/* Initializers under names of results: an optimizer computed them. The older exporter's training
 * form has none. Reals that were only transposed are named last. */
static void hint_rewritten(LsImport *im)
{
    const Onnx__GraphProto *g = im->m->graph;
    LsUntied *computed = ls_arena_alloc(im->cx->arena, g->n_initializer + 1, sizeof *computed);
    const char *moved = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = ls_text(g->initializer[i]->name);
        if (!ls_source_result_name(name)
            && !(name[0] == '/' && strstr(name, "_output_") != NULL
                 && strstr(name, "/Constant_") == NULL))
            continue;
        if (ls_onnx_type_is_float(g->initializer[i]->data_type)
            && strstr(name, "/Transpose") == NULL)
            computed[n++] = (LsUntied){name, NULL};
        else if (moved == NULL)
            moved = name;
    }
    if (n == 0 && moved != NULL)
        computed[n++] = (LsUntied){moved, NULL};
    if (n > 0 && !im->m->sources->traced)
        ls_warn(im->cx, LS_NOWHERE, "train from the file that the exporter wrote",
                "the file was rewritten by an optimizer, which computed %s: parameters that were "
                "read there, or whose "
                "values were alike, ones or zeros, may be missing or shared",
                listed(im, computed, n, ""));
}

static void hint_untied(LsImport *im)
{
    if (im->nuntied > 0)
        ls_warn(im->cx, LS_NOWHERE, training_call,
                "%u parameter%s an Identity of another initializer ('%s' of '%s'%s): exports in "
                "evaluation mode "
                "merge parameters whose values are equal. Each is trained on its own; --tie trains "
                "them as one",
                im->nuntied, im->nuntied > 1 ? "s are each" : " is", im->untied_name,
                im->untied_from, im->nuntied > 1 ? ", ..." : "");
}

/* Warns of the changes that PyTorch's default exporter makes to a model. */
static void hint_optimised(LsImport *im)
{
    const LsOnnxSources *s = im->m->sources;
    const LsOnnxEdits *e = im->m->edits;
    if (s->nfolded_norms > 0)
        ls_warn(im->cx, LS_NOWHERE, plain_call,
                "the exporter folded %u batch norm%s into convolutions (%s): the network that is "
                "trained has "
                "no such batch norms and is not the module",
                s->nfolded_norms, s->nfolded_norms > 1 ? "s" : "",
                listed(im, s->folded_norm, s->nfolded_norms, "of"));
    if (im->nblended > 0)
        ls_warn(im->cx, LS_NOWHERE, plain_call,
                "%u tensor%s computed by the exporter from parameters that it does not replace "
                "(%s): the "
                "module trains these parameters; the file has the computed tensor beside them or "
                "instead of them",
                im->nblended, im->nblended > 1 ? "s were" : " was",
                listed(im, im->blended, im->nblended, "from"));
    if (im->nfolded > 0)
        ls_warn(im->cx, LS_NOWHERE, plain_call,
                "%u parameter%s in the file only as the exporter's folding left them (%s): they "
                "train as "
                "in the module only if they were just transposed or reshaped",
                im->nfolded, im->nfolded > 1 ? "s are" : " is",
                listed(im, im->folded, im->nfolded, "from"));
    if (e->nlost > 0)
        ls_warn(im->cx, LS_NOWHERE, plain_call,
                "%u parameter%s of the module %s not in the file any more (%s): the network that "
                "is trained "
                "lacks them, unless an equal parameter replaces them or nothing read them",
                e->nlost, e->nlost > 1 ? "s" : "", e->nlost > 1 ? "are" : "is",
                listed(im, e->lost, e->nlost, ""));
    if (e->nretied > 0)
        ls_warn(
            im->cx, LS_NOWHERE, plain_call,
            "%u constant%s of a parameter that is also in the file (%s): it is computed from the "
            "parameter, so that both stay equal",
            e->nretied, e->nretied > 1 ? "s are copies" : " is a copy",
            listed(im, e->retied, e->nretied, "of"));
    if (e->nhalved > 0)
        ls_warn(im->cx, LS_NOWHERE, NULL,
                "%u bias%s of recurrent layers %s the zeros behind Keras's only bias (%s): they "
                "stay zeros",
                e->nhalved, e->nhalved > 1 ? "es" : "", e->nhalved > 1 ? "have" : "has",
                listed(im, e->halved, e->nhalved, ""));
    if (e->nunspread > 0)
        ls_warn(im->cx, LS_NOWHERE, plain_call,
                "%u parameter%s in the file only as repeated along the batch (%s): the parameter "
                "is trained, once",
                e->nunspread, e->nunspread > 1 ? "s are" : " is",
                listed(im, e->unspread, e->nunspread, "as"));
}

/* Names of results of TensorFlow's batch norms: .../batchnorm/sub:0, .../FusedBatchNormV3:0; but
 * not of the variables that its nodes read. */
static bool of_norm(const char *name)
{
    return (strstr(name, "batchnorm/") != NULL || strstr(name, "FusedBatchNorm") != NULL)
           && strstr(name, "ReadVariableOp") == NULL && strstr(name, "/Const") == NULL;
}

/* TensorFlow folds what is constant in inference, batch norms too, before tf2onnx or Keras writes
 * the file. */
static void hint_folded_by_tensorflow(LsImport *im)
{
    const Onnx__GraphProto *g = im->m->graph;
    LsUntied *found = ls_arena_alloc(im->cx->arena, g->n_initializer + 1, sizeof *found);
    uint32_t n = 0, norms = 0;
    for (int weights = 0; weights < 2; weights++) {     /* the norms' own tensors first */
        for (size_t i = 0; i < g->n_initializer; i++) {
            const char *name = ls_text(g->initializer[i]->name);
            if (ls_onnx_type_is_float(g->initializer[i]->data_type)
                && im->reads[ls_names_find(&im->m->names, name)] > 0
                && (weights ? strstr(name, "/merged_input") != NULL : of_norm(name)))
                found[n++] = (LsUntied){name, NULL};
        }
        norms = weights ? norms : n;
    }
    if (norms > 0)
        ls_warn(im->cx, LS_NOWHERE,
                "the module's normalisation by the batch cannot be had from this file: use norms "
                "that do not depend on the batch "
                "(layer, group), or build the network with another exporter",
                "the exporter folded batch norms into the layers before them: it computed %s. The "
                "network that is trained has "
                "no such batch norms and is not the module",
                listed(im, found, n, ""));
}

/* --bn without a batch norm would have no effect. */
void ls_onnx_check_bn(LsImport *im)
{
    if (im->o->bn != LS_BN_FILE && im->decisions->nbn == 0)
        ls_error(im->cx, LS_NOWHERE, LS_E_OPTION,
                 "an exporter may have folded them into other layers: docs/from-pytorch.md; leave "
                 "the option out to train the network as it is",
                 "--bn=%s has nothing to act on: the model has no batch norm",
                 im->o->bn == LS_BN_TRAIN ? "train" : "frozen");
}

static void hint_merged(LsImport *im)
{
    const LsOnnxEdits *e = im->m->edits;
    const char *call = im->m->sources->traced
                           ? plain_call
                           : "PyTorch: torch.onnx.export with dynamo=True, optimize=False, or with "
                             "dynamo=False, merges nothing";
    if (e->nuntied > 0)
        ls_warn(im->cx, LS_NOWHERE, call,
                "%u parameter%s been merged with another of the same initial value (%s). Each is "
                "trained on its own; --tie trains them as one",
                e->nuntied, e->nuntied > 1 ? "s had" : " had",
                listed(im, e->untied, e->nuntied, "with"));
    if (e->nliteral > 0)
        ls_warn(im->cx, LS_NOWHERE, call,
                "%u norm%s without parameters read%s the parameters of others (%s): a constant is "
                "read instead",
                e->nliteral, e->nliteral > 1 ? "s" : "", e->nliteral > 1 ? "" : "s",
                listed(im, e->literal, e->nliteral, "was"));
    if (e->nstatistic > 0)
        ls_warn(
            im->cx, LS_NOWHERE, call,
            "%u running statistic%s been merged with other tensors of the same value (%s). Each "
            "batch norm has its own statistic again",
            e->nstatistic, e->nstatistic > 1 ? "s had" : " had",
            listed(im, e->statistic, e->nstatistic, "with"));
}

static void hint_doubtful(LsImport *im)
{
    if (im->ndoubtful > 0)
        ls_warn(im->cx, LS_NOWHERE,
                "--train GLOB and --freeze GLOB decide; `lowerset inspect -v` lists "
                "every tensor with the reason",
                "the file does not tell whether %u tensor%s to be trained: %s%s", im->ndoubtful,
                im->ndoubtful > 1 ? "s are" : " is", im->doubtful,
                im->ndoubtful > 4 ? ", ..." : "");
}

static void hint_running(LsImport *im)
{
    const LsDecisions *d = im->decisions;
    uint32_t n = 0, first = 0;
    for (uint32_t k = 0; k < d->nbn; k++)
        if (d->bn[k].by == LS_BN_BY_RUNNING && n++ == 0)
            first = k;
    if (n > 0)
        ls_warn(
            im->cx, LS_NOWHERE,
            "--bn=train trains with the batch's; --bn=frozen says that this is "
            "meant",
            "%u batch norm%s in inference form ('%s'%s): running statistics are used, and stay as "
            "they are",
            n, n > 1 ? "s are" : " is", d->bn[first].node, more(n));
}

/* Warns of variances: ONNX divides by n, PyTorch by n - 1, so evaluation differs. */
static void hint_variances(LsImport *im)
{
    const LsDecisions *d = im->decisions;
    bool follows = false;
    for (uint32_t k = 0; k < d->nbn; k++)
        follows |= d->bn[k].by <= LS_BN_BY_TRACE && d->bn[k].by != LS_BN_BY_FROZEN;
    if (follows && !im->o->bn_var_asked
        && (strcmp(ls_text(im->m->proto->producer_name), "pytorch") == 0
            || strcmp(ls_text(im->m->proto->producer_name), "onnxruntime.transformers") == 0))
        ls_warn(
            im->cx, LS_NOWHERE,
            "--bn-var=torch follows PyTorch; --bn-var=onnx says that this is meant",
            "running variances follow the batch's population variance, as ONNX has it; PyTorch's "
            "are a little larger (n / (n - 1))");
}

static void hint_converted(LsImport *im)
{
    if (im->nconverted > 0)
        ls_warn(im->cx, LS_NOWHERE, NULL,
                "%u initializer%s not float ('%s' is %s); they are trained and exported "
                "as float",
                im->nconverted, im->nconverted > 1 ? "s are" : " is", ls_text(im->converted->name),
                ls_onnx_type_name(im->converted->data_type));
}

static void hint_sorted(LsImport *im)
{
    if (im->m->moved)
        ls_warn(im->cx, LS_NOWHERE, "other tools may refuse the file",
                "the nodes are not in a run order; they were sorted");
}

static void hint_unread(LsImport *im)
{
    if (im->nunread > 0)
        ls_warn(im->cx, LS_NOWHERE, NULL, "%u initializer%s read by no node ('%s'%s)", im->nunread,
                im->nunread > 1 ? "s are" : " is", im->unread_name,
                more(im->nunread));
}

static void hint_untrainable(LsImport *im)
{
    for (uint32_t i = 1; i < im->g->nvalue; i++)
        if (im->g->value[i].kind == LS_V_PARAM)
            return;
    ls_warn(
        im->cx, LS_NOWHERE,
        im->nweight_inputs > 0
            ? "export with the parameters as initializers (torch.onnx.export: export_params=True)"
            : NULL,
        "the model has no parameter to train%s",
        im->nweight_inputs > 0 ? ": its weights are graph inputs" : "");
}

/* Before opset 12 a Dropout has no mode. */
static void hint_dropout(LsImport *im)
{
    uint32_t count = 0;
    const LsOnnxFlat *first = NULL;
    for (uint32_t i = 0; i < im->m->nnode; i++) {
        const LsOnnxFlat *f = &im->m->node[i];
        if (ls_flat_is(f, "Dropout") && f->version < 12)
            first = count++ == 0 ? f : first;
    }
    if (count > 0 && im->o->dropout == LS_DROPOUT_FILE)
        ls_warn(im->cx, ls_flat_where(first), "--dropout=on or --dropout=off decides",
                "%u Dropout%s of opset %d, which does not say whether elements are dropped: in "
                "training they are", count, count > 1 ? "s are" : " is", first->version);
}

void ls_onnx_hints(LsImport *im)
{
    hint_sorted(im);
    hint_unread(im);
    hint_converted(im);
    hint_untrainable(im);
    hint_folded(im);
    hint_made_up(im);
    hint_rewritten(im);
    hint_untied(im);
    hint_optimised(im);
    hint_folded_by_tensorflow(im);
    hint_merged(im);
    hint_running(im);
    hint_variances(im);
    hint_doubtful(im);
    hint_dropout(im);
    ls_onnx_hint_lost_stops(im);
    ls_onnx_hint_moving_buffers(im);
    ls_onnx_hint_caches(im);
}
