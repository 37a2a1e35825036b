/* tests/compiler/test_verify.c -- the check between passes refuses every kind of broken graph. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

typedef struct Small { LsValueId x, w, h, y, one; LsNodeId mul, exp, sgd; } Small;

/* y = exp(x w); w is updated. */
static Small open_small(void)
{
    static LsValueId list[2];
    Small s;
    graph_open();
    s.x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(3), NULL);
    s.w = param("w", SHAPE(3));
    s.one = ls_const_real(&cx, g, 1);
    s.h = ls_append2(&cx, g, LS_OP_MUL, s.x, s.w, NULL);
    s.y = ls_append1(&cx, g, LS_OP_EXP, s.h, NULL);
    s.mul = g->value[s.h.i].def, s.exp = g->value[s.y.i].def;
    ls_append(&cx, g, LS_OP_SGD, 5, (LsValueId[]){s.w, s.y, {0}, {0}, {0}}, &(LsAttr){0});
    s.sgd = (LsNodeId){g->nnode - 1};
    list[0] = s.x, list[1] = s.y;
    g->input = list, g->ninput = 1;
    g->output = list + 1, g->noutput = 1;
    ck_assert(ls_verify(&cx, g));
    return s;
}

/* A value that no node names, made by node `def` by its own account. */
static void extra(LsValueKind kind, uint32_t def)
{
    LsValueId v = ls_value_add(&cx, g, kind, "extra", LS_REAL, &SHAPE(3), NULL);
    g->value[v.i].def.i = def;
}

/* Breaks the graph in one way. Returns what is said then; NULL: there is no such way. */
static const char *broken(const Small *s, int way)
{
    LsNode *mul = &g->node[s->mul.i], *exp = &g->node[s->exp.i];
    switch (way) {
    case 0: exp->op = LS_NOPS; return "an operator without a row";
    case 1: mul->nin = 1; return "a wrong number of operands";
    case 2: mul->in = g->noperand - 1; return "operands or results lie outside their arrays";
    case 3: g->operand[mul->in] = s->y; return "an operand is made by a later node";
    case 4:
        g->operand[mul->in] = (LsValueId){g->nvalue};
        return "an operand is made by a later node";
    case 5: g->value[s->y.i].def = s->mul; return "a result does not know its node";
    case 6: exp->fwd = s->exp; return "a gradient precedes the node it differentiates";
    case 7: g->value[s->x.i].shape.rank = LS_MAX_RANK + 1; return "a value has no shape or type";
    case 8: g->value[s->x.i].type = LS_NTYPES; return "a value has no shape or type";
    case 9: g->value[s->x.i].shape.dim[0] = 0; return "a dimension below 1";
    case 10: g->value[s->y.i].shape.dim[0] = 0; return "a dimension below 1";
    case 11: extra(LS_V_TEMP, g->nnode + 1000000); return "a result belongs to no node";
    case 12: extra(LS_V_INPUT, s->mul.i); return "an input, state or constant is made by a node";
    case 13: g->value[s->one.i].data = NULL; return "a constant has no data";
    case 14: ls_append1(&cx, g, LS_OP_EXP, s->w, NULL); return "touched after its update";
    case 15: g->value[s->w.i].once_written = false; return "not marked as written state";
    case 16: g->operand[g->node[s->sgd.i].in] = s->x; return "not marked as written state";
    case 17: g->value[s->h.i].name = NULL; return "a value has no name";
    case 18: g->input[0] = (LsValueId){0}; return "a graph input is no value";
    case 19: g->output[0] = (LsValueId){g->nvalue}; return "a graph output is no value";
    case 20: g->value[s->w.i].type = LS_BF16; return "is stored in 16 bits";
    default: return NULL;
    }
}

START_TEST(every_kind_of_broken_graph_is_refused)
{
    const char *want = "";
    for (int way = 0; want != NULL; way++) {
        char *log;
        size_t size;
        Small s = open_small();
        cx.log = open_memstream(&log, &size);
        want = broken(&s, way);
        ck_assert_msg(ls_verify(&cx, g) == (want == NULL), "way %d", way);
        fclose(cx.log);
        if (want != NULL) {
            ck_assert_int_eq(cx.last, LS_E_VERIFY);
            ck_assert_msg(strstr(log, want) != NULL, "'%s' is not in: %s", want, log);
            ck_assert_ptr_nonnull(strstr(log, "a defect of lowerset, not of the model"));
        }
        free(log);
        graph_close();
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("verify");
    tcase_add_test(tc, every_kind_of_broken_graph_is_refused);
    return run_tests("verify", tc);
}
