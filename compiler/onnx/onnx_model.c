/* compiler/onnx/onnx_model.c -- queries on the nodes of a file. */
#include "compiler/onnx/onnx_model.h"

#include <string.h>

#include "compiler/onnx/onnx_domain.h"

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

static bool is_one_of(const LsOnnxFlat *f, const char *const op[], size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (ls_flat_is(f, op[k]))
            return true;
    return false;
}

bool ls_onnx_sequence_op(const LsOnnxFlat *f)
{
    static const char *const op[] = {"ConcatFromSequence", "Optional", "OptionalGetElement",
                                     "OptionalHasElement", "SequenceAt", "SequenceConstruct",
                                     "SequenceEmpty", "SequenceErase", "SequenceInsert",
                                     "SequenceLength", "SplitToSequence"};
    return f->version >= 11 && is_one_of(f, op, sizeof op / sizeof *op);
}

bool ls_onnx_control_op(const LsOnnxFlat *f)
{
    static const char *const op[] = {"If", "Loop", "Scan", "SequenceMap"};
    return is_one_of(f, op, sizeof op / sizeof *op);
}

/* The importer itself handles Identity, sequences and bodies. */
bool ls_flat_supported(const LsOnnxFlat *f)
{
    return ls_flat_row(f) != NULL || ls_flat_is(f, "Identity") || ls_onnx_sequence_op(f)
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
