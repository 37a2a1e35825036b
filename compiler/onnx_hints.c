/* compiler/onnx_hints.c -- recognises exports that load well and train badly.
 *
 * An evaluation-mode export folds batch norms into convolutions (the folded weights get made-up
 * names such as onnx::Conv_27, both weight and bias), drops dropout, and merges parameters whose
 * initial values are equal through Identity nodes. */
#include "compiler/onnx_import.h"

#include <string.h>

static const char training_call[] =
    "torch.onnx.export(model, args, file, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False)";

static bool all_digits(const char *s)
{
    return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

/* onnx::Conv_27, or a bare number as exporters before 2022 gave. */
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
        ls_warn(
            im->cx, ls_flat_where(first), training_call,
            "%u convolution%s weight and bias under made-up names ('%s', '%s') and no batch norm "
            "is left: an evaluation-mode export has probably folded it into them. It trains "
            "without batch norm and under these names",
            folded, folded > 1 ? "s have" : " has", first->proto->input[1], first->proto->input[2]);
}

static void hint_untied(LsImport *im)
{
    if (im->nuntied > 0)
        ls_warn(im->cx, LS_NOWHERE, training_call,
                "%u parameter%s an Identity of another initializer ('%s' of '%s'%s): "
                "evaluation-mode exports merge parameters that happen to be equal. Each is trained "
                "on its own; --tie keeps them one",
                im->nuntied, im->nuntied > 1 ? "s are each" : " is", im->untied_name,
                im->untied_from, im->nuntied > 1 ? ", ..." : "");
}

static void hint_converted(LsImport *im)
{
    if (im->nconverted > 0)
        ls_warn(im->cx, LS_NOWHERE, NULL,
                "%u initializer%s not float ('%s' is %s); computing and the exported file use "
                "float",
                im->nconverted, im->nconverted > 1 ? "s are" : " is", ls_text(im->converted->name),
                ls_onnx_type_name(im->converted->data_type));
}

static void hint_sorted(LsImport *im)
{
    if (im->m->moved)
        ls_warn(im->cx, LS_NOWHERE, "other tools may refuse the file",
                "the nodes are not in an order in which they can run; they were sorted");
}

static void hint_unread(LsImport *im)
{
    const char *more = im->nunread > 1 ? ", ..." : "";
    if (im->nunread > 0)
        ls_warn(im->cx, LS_NOWHERE, NULL, "%u initializer%s read by no node ('%s'%s)", im->nunread,
                im->nunread > 1 ? "s are" : " is", im->unread_name, more);
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

void ls_onnx_hints(LsImport *im)
{
    hint_sorted(im);
    hint_unread(im);
    hint_converted(im);
    hint_untrainable(im);
    hint_folded(im);
    hint_untied(im);
}
