/* codegen/program/packed_tables.c -- see the header. */
#include "codegen/program/packed_tables.h"

#include "codegen/kernels/unpack.h"
#include "codegen/program/phase_tables.h"
#include "compiler/packed/packed_tensor.h"

#include <inttypes.h>
#include <string.h>

static const LsPackedTensor *tensor_of(const LsStateSlot *s)
{
    return s->g->value[s->v.i].packed;
}

const LsStateSlot *ls_packed_slot(const LsAddresses *a, uint32_t k)
{
    for (uint32_t i = 0; i < a->nstate; i++)
        if (tensor_of(&a->state[i]) != NULL && k-- == 0)
            return &a->state[i];
    return NULL;
}

int64_t ls_packed_number(const LsAddresses *a, const char *name)
{
    const LsStateSlot *s;
    for (uint32_t k = 0; (s = ls_packed_slot(a, k)) != NULL; k++)
        if (strcmp(tensor_of(s)->name, name) == 0)
            return k;
    return -1;
}

void ls_packed_tables_print(const LsAddresses *a, LsEmit *e)
{
    const LsStateSlot *s = ls_packed_slot(a, 0);
    if (s == NULL)
        return;
    ls_emit_line(e, "#include <string.h>");
    ls_emit_line(e, "#include \"runtime/ls_unpack.h\"");
    ls_emit_line(e, "static const LsPacked packed_codes[] = {");
    for (uint32_t k = 0; (s = ls_packed_slot(a, k)) != NULL; k++)
        ls_emit_line(e, "    %s,", ls_packed_literal(a->cx->arena, &tensor_of(s)->codes));
    ls_emit_line(e, "};");
    ls_emit_line(e, "static const LsStateTensor packed[] = {");
    for (uint32_t k = 0; (s = ls_packed_slot(a, k)) != NULL; k++) {
        const LsPackedTensor *of = tensor_of(s);
        LsTensor t = {.name = of->name, .type = LS_DT_REAL, .rank = of->shape.rank,
                      .at = s->row.t.at};
        memcpy(t.dim, of->shape.dim, sizeof t.dim);
        fprintf(e->to, "    {");
        ls_tensor_print(e->to, &t);
        fprintf(e->to, ", LS_STATE_FROZEN, &packed_codes[%u], %" PRId64 "},\n", k,
                ls_onnx_offset(a, of->name));
    }
    ls_emit_line(e, "};");
}

void ls_packed_tables_entry(const LsAddresses *a, LsEmit *e)
{
    uint32_t n = 0;
    while (ls_packed_slot(a, n) != NULL)
        n++;
    if (n > 0)
        ls_emit_line(e, ".packed = packed, .npacked = %u,", n);
}
