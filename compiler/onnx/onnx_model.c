/* compiler/onnx/onnx_model.c -- queries on the nodes of a file. */
#include "compiler/onnx/onnx_model.h"

#include <stdio.h>
#include <string.h>

#include "compiler/onnx_file/onnx_domain.h"

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
    char name[128];
    const char *domain = ls_onnx_domain(f->proto->domain);
    int length = snprintf(name, sizeof name, "%s%s%s", domain, domain[0] != '\0' ? "." : "",
                          ls_text(f->proto->op_type));
    const LsOnnxOp *row = length >= 0 && (size_t)length < sizeof name ? ls_onnx_find(name) : NULL;
    return row != NULL && f->version >= row->since ? row : NULL;
}

const LsOnnxInner ls_onnx_inner[] = {
    {"ConcatFromSequence", 11, LS_INNER_LIST}, {LS_PREVIEW "FlexAttention", 1, LS_INNER_BODY},
    {"Identity", 1, LS_INNER_SAME},
    {"If", 1, LS_INNER_BODY},                  {"Loop", 1, LS_INNER_BODY},
    {"Optional", 15, LS_INNER_LIST},           {"OptionalGetElement", 15, LS_INNER_LIST},
    {"OptionalHasElement", 15, LS_INNER_LIST}, {"Scan", 8, LS_INNER_BODY},
    {"SequenceAt", 11, LS_INNER_LIST},         {"SequenceConstruct", 11, LS_INNER_LIST},
    {"SequenceEmpty", 11, LS_INNER_LIST},      {"SequenceErase", 11, LS_INNER_LIST},
    {"SequenceInsert", 11, LS_INNER_LIST},     {"SequenceLength", 11, LS_INNER_LIST},
    {"SequenceMap", 17, LS_INNER_BODY},        {"SplitToSequence", 11, LS_INNER_LIST},
    {NULL, 0, LS_INNER_SAME},
};

/* The node's operator, after its domain and a dot in other domains than ONNX's. */
static bool is_called(const LsOnnxFlat *f, const char *name)
{
    const char *domain = ls_onnx_domain(f->proto->domain);
    size_t length = strlen(domain);
    if (length > 0 && (strncmp(name, domain, length) != 0 || name[length++] != '.'))
        return false;
    return strcmp(name + length, ls_text(f->proto->op_type)) == 0;
}

static bool is_inner(const LsOnnxFlat *f, LsInnerKind kind)
{
    for (const LsOnnxInner *r = ls_onnx_inner; r->name != NULL; r++)
        if (r->kind == kind && f->version >= r->since && is_called(f, r->name))
            return true;
    return false;
}

bool ls_onnx_sequence_op(const LsOnnxFlat *f) { return is_inner(f, LS_INNER_LIST); }
bool ls_onnx_control_op(const LsOnnxFlat *f) { return is_inner(f, LS_INNER_BODY); }

bool ls_flat_supported(const LsOnnxFlat *f)
{
    return ls_flat_row(f) != NULL || is_inner(f, LS_INNER_SAME) || ls_onnx_sequence_op(f)
        || ls_onnx_control_op(f);
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
