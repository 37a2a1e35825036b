/* tests/codegen/test_kernels_map.c -- every pointwise row whose expression has a twin for constant
 * folding, printed, compiled and run alone: the two agree, over reals and over integers, also where
 * the result is NaN or infinite. */
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

enum { POINTS = 300, ROWS = 8, OPERANDS = 4 };

/* Several rows, which share their operands: three of the type, and one of bools. */
typedef struct Body { LsFused f; LsStmt stmt[ROWS]; LsFusedOut out[ROWS]; } Body;

static bool is_logic(LsOpCode op)
{
    return op == LS_OP_NOT || op == LS_OP_AND || op == LS_OP_OR || op == LS_OP_XOR;
}

static LsType result_type(LsOpCode op, LsType of)
{
    switch (op) {
    case LS_OP_EQUAL:
    case LS_OP_GREATER:
    case LS_OP_LESS:
    case LS_OP_GREATER_EQUAL:
    case LS_OP_LESS_EQUAL: return LS_BOOL;
    default:
        return is_logic(op) ? LS_BOOL : of;
    }
}

/* Which operand of the body is operand k of the row. */
static int operand_of(LsOpCode op, int k)
{
    return is_logic(op) || (op == LS_OP_WHERE && k == 0) ? OPERANDS - 1 : k;
}

/* Reals in [-6, 6) and some edges, integers in [-32, 32), bools. */
static LsValueId operand(Rig *r, int k, LsType type)
{
    static const double edge[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-30, 70000, -1e6};
    LsValueId v = rig_operand(r, k == OPERANDS - 1 ? LS_BOOL : type, LS_ROW, SHAPE(POINTS));
    for (int i = 0; i < POINTS && k < OPERANDS - 1; i++) {
        double x = rig_random(r);
        size_t e = (size_t)(k == 0 ? i : i / 10) % 10;
        rig_set(r, v, i, type != LS_REAL ? floor(32 * x) : i < 100 ? edge[e] : 6 * x);
    }
    return v;
}

/* The row has a twin and can stand alone. Div of integers traps; the importer takes DIV_INT. */
static bool is_tested(LsOpCode op, LsType type)
{
    const LsOp *row = ls_op[op];
    bool alone = op == LS_OP_CAST || op == LS_OP_EXPAND || op == LS_OP_DETACH
                 || (op == LS_OP_DIV && type != LS_REAL);
    bool twin = type == LS_REAL ? row->eval != NULL : row->eval_int != NULL;
    return row->kernel == LS_K_MAP && row->max_in <= 3 && twin && !alone;
}

/* A node of the next rows from *op on. */
static void add_rows(Rig *r, LsOpCode *op, LsType type, const LsValueId in[])
{
    Body *b = ls_arena_alloc(r->cx.arena, 1, sizeof *b);
    b->f = (LsFused){.space = SHAPE(POINTS), .layout = LS_ROW, .stmt = b->stmt, .out = b->out};
    for (; *op < LS_NOPS && b->f.nstmt < ROWS; ++*op) {
        if (!is_tested(*op, type))
            continue;
        LsStmt *s = &b->stmt[b->f.nstmt];
        *s = (LsStmt){.op = (uint16_t)*op,
                      .narg = ls_op[*op]->min_in,
                      .type = result_type(*op, type),
                      .name = "n",
                      .attr = {.scalar = {.a = 0.25, .b = 2}}};
        for (int k = 0; k < s->narg; k++)
            s->arg[k] = (int16_t)~operand_of(*op, k);
        b->out[b->f.nstmt].stmt = b->f.nstmt;
        b->f.nstmt++;
    }
    LsNodeId n = rig_node(r, LS_OP_FUSED, OPERANDS, in, b->f.nstmt,
                          &(LsAttr){.fused = {.body = &b->f}});
    for (int k = 0; k < b->f.nstmt; k++)
        rig_result(r, n, k, b->stmt[k].type, LS_ROW, SHAPE(POINTS));
}

static void check_point(const Rig *r, const LsStmt *s, const double x[], bool reals, double got)
{
    const LsOp *row = ls_op[s->op];
    int64_t whole[3], y = 0;
    for (int k = 0; k < 3; k++)
        whole[k] = reals ? 0 : (int64_t)x[k];
    if (!reals && (!row->eval_int(whole, &s->attr, &y) || (s->type == LS_I32 && y != (int32_t)y)))
        return;                 /* undefined, or wider than the result */
    double want = reals ? row->eval(x, &s->attr) : (double)y;
    if (reals && r->real_bytes == 4)
        want = (float)want;
    if (reals && r->real_bytes == 8 && (s->op == LS_OP_ROUND_HALF || s->op == LS_OP_ROUND_BRAIN))
        want = x[0];
    double bound =
        (r->real_bytes == 4 ? 4e-7 : 1e-14) * (fabs(want) > 1 || !reals ? fabs(want) : 1);
    bool near = isnan(want) ? isnan(got) : got == want || (reals && fabs(got - want) <= bound);
    if (!near)
        ck_abort_msg("%s of %.9g %.9g: %.9g, want %.9g", row->name, x[0], x[1], got, want);
}

static void check_node(Rig *r, LsNodeId n, bool reals)
{
    const LsFused *f = r->g->node[n.i].attr.fused.body;
    for (int row = 0; row < f->nstmt; row++)
        for (int64_t i = 0; i < POINTS; i++) {
            double x[3] = {0};
            for (int k = 0; k < f->stmt[row].narg; k++)
                x[k] = rig_get(r, ls_in(r->g, n, operand_of(f->stmt[row].op, k)), i);
            check_point(r, &f->stmt[row], x, reals, rig_get(r, ls_out(r->g, n, row), i));
        }
}

static void all_rows(int real_bytes, LsType type)
{
    Rig r;
    LsValueId in[OPERANDS];
    rig_open(&r, real_bytes);
    for (int k = 0; k < OPERANDS; k++)
        in[k] = operand(&r, k, type);
    for (LsOpCode op = 1; op < LS_NOPS; )
        add_rows(&r, &op, type, in);
    rig_run(&r);
    for (uint32_t i = 1; i < r.g->nnode; i++)
        check_node(&r, (LsNodeId){i}, type == LS_REAL);
    rig_close(&r);
}

static const int real_bytes[] = {4, 8};

START_TEST(test_rows_of_reals_agree_with_their_twins)
{
    all_rows(real_bytes[_i], LS_REAL);
}
END_TEST

START_TEST(test_rows_of_integers_agree_with_their_twins)
{
    all_rows(4, _i == 0 ? LS_I64 : LS_I32);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_map");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_rows_of_reals_agree_with_their_twins, 0, 2);
    tcase_add_loop_test(t, test_rows_of_integers_agree_with_their_twins, 0, 2);
    return run_tests("kernels_map", t);
}
