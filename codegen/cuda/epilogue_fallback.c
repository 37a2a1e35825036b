/* codegen/cuda/epilogue_fallback.c */
#include "codegen/cuda/epilogue_fallback.h"

#include "base/arena.h"

static void take(LsBehind *b, int argument, const LsShape *shape)
{
    int at = b->node[1].nin + b->node[1].nout;
    b->value[at + 1] = (LsValue){.name = "v", .kind = LS_V_TEMP, .type = b->type, .shape = *shape,
                                 .layout = shape->rank > 2 ? b->body.layout : LS_ROW};
    b->operand[at] = (LsValueId){(uint32_t)at + 1};
    b->argument[at] = argument;
}

int ls_behind_operand(LsBehind *b, int argument, const LsShape *shape)
{
    take(b, argument, shape);
    return ~(int)b->node[1].nin++;
}

int ls_behind_state(LsBehind *b, LsOpCode op, int first, int second)
{
    LsStmt *s = &b->stmt[b->body.nstmt];
    *s = (LsStmt){.op = (uint16_t)op, .type = b->type, .narg = ls_op[op]->min_in,
                  .arg = {(int16_t)first, (int16_t)second}};
    return b->body.nstmt++;
}

void ls_behind_result(LsBehind *b, int argument, const LsShape *shape, LsFusedOut out)
{
    take(b, argument, shape);
    b->out[b->node[1].nout++] = out;
}

/* Prints NAME_behind(run, arg), which runs the node's kernel on its share of the call's
 * arguments. */
static void print_call(const LsBehind *b, const LsKernelText *k, const char *kernel)
{
    char at[16 * LS_BEHIND_ARGUMENTS] = "";
    for (int i = 0, n = 0; i < b->node[1].nin + b->node[1].nout; i++)
        n += snprintf(at + n, sizeof at - (size_t)n, "arg[%d], ", b->argument[i]);
    ls_emit_line(k->host, "static void %s_behind(LsRun *run, void *const arg[])", k->name);
    ls_emit_line(k->host, "{");
    ls_emit_line(k->host, "void *const at[] = {%sNULL};", at);
    ls_emit_line(k->host, "%s(run, at);", kernel);
    ls_emit_line(k->host, "}");
}

void ls_behind_emit(LsBehind *b, const LsKernelText *k, const char *library)
{
    char name[80];
    LsNode *n = &b->node[1];
    LsKernelText of = *k;
    snprintf(name, sizeof name, "%s_rest", k->name);
    b->body.stmt = b->stmt;
    b->body.out = b->out;
    n->op = LS_OP_FUSED;
    n->out = n->nin + 1u;
    n->name = "";
    n->attr.fused.body = &b->body;
    b->g = (LsGraph){.value = b->value, .nvalue = LS_BEHIND_ARGUMENTS + 1, .node = b->node,
                     .nnode = 2, .operand = b->operand, .noperand = n->nin,
                     .arena = ls_arena_new()};
    of.g = &b->g;
    of.n = (LsNodeId){1};
    of.name = name;
    of.whole = true;
    ls_emit_line(k->e, "/* Where %s does not do this in its own kernel. */", library);
    ls_emitter_of(LS_TARGET_CUDA, LS_K_FUSED)->emit(&of);
    print_call(b, k, name);
    ls_arena_free(b->g.arena);
}
