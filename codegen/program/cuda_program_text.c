/* codegen/program/cuda_program_text.c */
#include "codegen/program/cuda_program_text.h"

static bool runs(const LsCodePhase *phase, LsKernelId id)
{
    const LsGraph *g = phase->problem != NULL ? phase->problem->g : NULL;
    for (uint32_t i = 1; g != NULL && i < g->nnode; i++)
        if (ls_op[g->node[i].op]->kernel == id)
            return true;
    return false;
}

void ls_cuda_program_print(const LsCode *c, LsEmit *e)
{
    static const struct { LsKernelId id; const char *library, *data; } row[] = {
        {LS_K_CONV, "ls_cudnn", "&convs"}, {LS_K_MATMUL, "ls_cublaslt", "NULL"}};
    uint32_t nuse = 0;
    ls_emit_line(e, "extern const unsigned char ls_cuda_fatbin[];");
    ls_emit_line(e, "static const LsCudaUse use[] = {");
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (runs(&c->train, row[k].id) || runs(&c->update, row[k].id)
            || runs(&c->eval, row[k].id)) {
            ls_emit_line(e, "{&%s, %s},", row[k].library, row[k].data);
            nuse++;
        }
    ls_emit_line(e, "{NULL, NULL}");
    ls_emit_line(e, "};");
    ls_emit_line(e, "static const LsCudaProgram cuda = {");
    ls_emit_line(e, ".fatbin = ls_cuda_fatbin, .archs = \"%s\",", c->archs != NULL ? c->archs : "");
    ls_emit_line(e,
                 ".part = part, .npart = sizeof part / sizeof *part - 1, .use = use, .nuse = %u,%s",
                 nuse, c->ranks != NULL ? " .add = p_rank_add," : "");
    ls_emit_line(e, "};");
}
