/* tests/codegen/test_kernels_index.c -- scatters, gathers by element, scans, largest elements and
 * images at computed places: kernels against the words of move.def. */
#include "tests/support/eval.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};

/* Index operands of all signs, two of them outside where there is room. */
static LsValueId indices(Rig *r, LsType type, LsShape shape, int64_t length)
{
    LsValueId v = rig_operand(r, type, LS_ROW, shape);
    for (int64_t j = 0; j < ls_count(&shape); j++)
        rig_set(r, v, j, floor(rig_random(r) * (double)length));
    for (int64_t j = 0; j < 2 && ls_count(&shape) > 20; j++)
        rig_set(r, v, 4 + 9 * j, (double)(j == 0 ? length : -length - 1));
    return v;
}

/* The results of all nodes are those of the evaluator. */
static void agree(Rig *r, double tolerance)
{
    Eval e = eval_new(r->g);
    rig_run(r);
    for (uint32_t v = 1; v < r->g->nvalue; v++)
        for (int64_t i = 0; r->g->value[v].def.i == 0 && i < ls_count(&r->g->value[v].shape); i++)
            e.v[v][i] = rig_get(r, (LsValueId){v}, i);
    for (uint32_t n = 1; n < r->g->nnode; n++) {
        LsValueId y = ls_out(r->g, (LsNodeId){n}, 0);
        eval_node(&e, (LsNodeId){n});
        for (int64_t i = 0; i < ls_count(ls_shape(r->g, y)); i++)
            rig_close_to(r, y, i, e.v[y.i][i], tolerance);
    }
}

typedef struct Rows { LsShape x, index, updates; int axis; LsType type; } Rows;
static const Rows rows[] = {
    {{2, {11, 200}}, {2, {3, 9}}, {3, {3, 9, 200}}, 0, LS_I64},
    {{3, {2, 5, 7}}, {1, {6}}, {3, {2, 6, 7}}, 1, LS_I32},
    {{2, {70, 3}}, {1, {333}}, {2, {333, 3}}, 0, LS_I64},
};

START_TEST(rows_are_scattered_in_the_order_of_the_indices)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (size_t c = 0; c < sizeof rows / sizeof *rows; c++)
        for (int how = LS_SCATTER_ADD; how <= LS_SCATTER_MIN; how++) {
            const Rows *t = &rows[c];
            LsValueId u = rig_operand(&r, LS_REAL, LS_ROW, t->updates),
                      at = indices(&r, t->type, t->index, t->x.dim[t->axis]),
                      base = rig_operand(&r, LS_REAL, LS_ROW, t->x), one = rig_literal(&r, 0.5);
            LsAttr attr = {.gather = {.axis = t->axis, .x = t->x, .how = (LsScatterHow)how}};
            LsNodeId n = rig_node(&r, LS_OP_SCATTER, VALUES(u, at, base), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, t->x);
            ck_assert(ls_kernel_inplace(r.g, n, 0, 2) && !ls_kernel_inplace(r.g, n, 0, 0));
            if (how != LS_SCATTER_SET)
                continue;
            LsNodeId same = rig_node(&r, LS_OP_SCATTER, VALUES(one, at, base), 1, &attr);
            rig_result(&r, same, 0, LS_REAL, LS_ROW, t->x);
        }
    agree(&r, 2e-6);
    rig_close(&r);
}
END_TEST

/* Types other than real, which the GPU's text also must name. */
START_TEST(integers_and_bools_are_scattered)
{
    Rig r;
    rig_open(&r, 4);
    static const LsType types[] = {LS_I64, LS_I32, LS_BOOL};
    for (int k = 0; k < 3; k++) {
        LsShape x = {2, {9, 4}};
        LsValueId u = rig_operand(&r, types[k], LS_ROW, SHAPE(30, 4)),
                  at = indices(&r, LS_I64, SHAPE(30), 9),
                  base = rig_operand(&r, types[k], LS_ROW, x);
        LsAttr attr = {
            .gather = {.axis = 0, .x = x, .how = k == 2 ? LS_SCATTER_SET : LS_SCATTER_MAX}};
        LsNodeId n = rig_node(&r, LS_OP_SCATTER, VALUES(u, at, base), 1, &attr);
        rig_result(&r, n, 0, types[k], LS_ROW, x);
        LsValueId each = indices(&r, LS_I32, SHAPE(7, 4), 9),
                  v = rig_operand(&r, types[k], LS_ROW, SHAPE(7, 4));
        n = rig_node(&r, LS_OP_SCATTER_EACH, VALUES(v, each, base), 1, &attr);
        rig_result(&r, n, 0, types[k], LS_ROW, x);
    }
    agree(&r, 0);
    rig_close(&r);
}
END_TEST

static const Rows each[] = {
    {{3, {2, 5, 7}}, {3, {2, 9, 7}}, {3, {2, 9, 7}}, 1, LS_I32},
    {{2, {40, 12}}, {2, {40, 5}}, {2, {40, 5}}, 1, LS_I64},
};

START_TEST(elements_are_gathered_and_scattered_by_their_own_index)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (size_t c = 0; c < sizeof each / sizeof *each; c++)
        for (int how = LS_SCATTER_ADD; how <= LS_SCATTER_MIN; how++) {
            const Rows *t = &each[c];
            LsValueId u = rig_operand(&r, LS_REAL, LS_ROW, t->updates),
                      at = indices(&r, t->type, t->index, t->x.dim[t->axis]),
                      base = rig_operand(&r, LS_REAL, LS_ROW, t->x), one = rig_literal(&r, 0.5);
            LsAttr attr = {.gather = {.axis = t->axis, .x = t->x, .how = (LsScatterHow)how}};
            LsNodeId n = rig_node(&r, LS_OP_GATHER_EACH, VALUES(base, at), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, t->index);
            n = rig_node(&r, LS_OP_SCATTER_EACH, VALUES(u, at, base), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, t->x);
            if (how > LS_SCATTER_SET)
                continue;
            n = rig_node(&r, LS_OP_SCATTER_EACH, VALUES(u, at), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, t->x);
            n = rig_node(&r, LS_OP_SCATTER_EACH, VALUES(one, at, base), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, t->x);
        }
    agree(&r, 2e-6);
    rig_close(&r);
}
END_TEST

START_TEST(scans_run_along_any_axis_from_either_end)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    static const LsShape shapes[] = {{2, {30, 9}}, {3, {4, 6, 70}}};
    for (size_t c = 0; c < 2; c++)
        for (int form = 0; form < 4; form++) {
            LsAttr attr = {
                .scan = {.axis = shapes[c].rank / 2, .exclusive = form & 1, .reverse = form & 2}};
            LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, shapes[c]),
                      dy = rig_operand(&r, LS_REAL, LS_ROW, shapes[c]),
                      i = rig_operand(&r, LS_I64, LS_ROW, shapes[c]);
            rig_set(&r, x, 3, 0);
            LsNodeId n = rig_node(&r, LS_OP_CUM_SUM, VALUES(x), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, shapes[c]);
            n = rig_node(&r, LS_OP_CUM_SUM, VALUES(i), 1, &attr);
            rig_result(&r, n, 0, LS_I64, LS_ROW, shapes[c]);
            n = rig_node(&r, LS_OP_CUM_PROD, VALUES(x), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, shapes[c]);
            n = rig_node(&r, LS_OP_CUM_PROD_GRAD, VALUES(dy, x), 1, &attr);
            rig_result(&r, n, 0, LS_REAL, LS_ROW, shapes[c]);
        }
    agree(&r, 2e-6);
    rig_close(&r);
}
END_TEST

START_TEST(segments_are_runs_of_equal_numbers)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    for (int k = 0; k < 4; k++) {
        const LsShape s = {2, {k + 1, k == 0 ? 1 : 37 * k}}, spans = {3, {s.dim[0], s.dim[1], 2}};
        const LsValueId x = rig_operand(&r, k % 2 ? LS_I32 : LS_I64, LS_ROW, s);
        for (int64_t i = 0; i < ls_count(&s); i++)      /* numbers come back later, too */
            rig_set(&r, x, i, (double)(i * i / 50 % 3));
        const LsNodeId n = rig_node(&r, LS_OP_SEGMENTS, VALUES(x), 2, &(LsAttr){0});
        rig_result(&r, n, 0, LS_I32, LS_ROW, spans);
        rig_result(&r, n, 1, LS_I32, LS_ROW, s);
    }
    agree(&r, 0);
    for (uint32_t i = 1; i < r.g->nnode; i++) {
        const LsValueId spans = ls_out(r.g, (LsNodeId){i}, 0), places = {spans.i + 1};
        const LsShape *s = ls_shape(r.g, places);
        for (int64_t k = 0; k < ls_count(s); k++)
            ck_assert(rig_get(&r, places, k)
                      == (double)(k % s->dim[1]) - rig_get(&r, spans, 2 * k));
    }
    rig_close(&r);
}
END_TEST

START_TEST(largest_elements_come_in_order_and_ties_by_index)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    static const LsShape shapes[] = {{2, {9, 40}}, {3, {2, 12, 30}}};
    for (size_t c = 0; c < 2; c++)
        for (int least = 0; least < 2; least++)
            for (int part = 0; part < 3; part++) {
                int axis = shapes[c].rank / 2;
                LsShape y = shapes[c];
                LsAttr attr = {.top = {.axis = axis,
                                       .k = part == 0   ? 1
                                            : part == 1 ? 5
                                                        : y.dim[axis],
                                       .least = least}};
                y.dim[axis] = attr.top.k;
                LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, shapes[c]),
                          i = rig_operand(&r, LS_I32, LS_ROW, shapes[c]);
                for (int64_t j = 0; j < ls_count(&shapes[c]); j += 3)
                    rig_set(&r, x, j, floor(4 * rig_random(&r)));
                rig_set(&r, x, 2, NAN);
                rig_set(&r, x, 5, NAN);
                LsNodeId n = rig_node(&r, LS_OP_TOP_K, VALUES(x), 1, &attr);
                rig_result(&r, n, 0, LS_I64, LS_ROW, y);
                n = rig_node(&r, LS_OP_TOP_K, VALUES(i), 1, &attr);
                rig_result(&r, n, 0, LS_I64, LS_ROW, y);
            }
    agree(&r, 0);
    rig_close(&r);
}
END_TEST

/* ---- images at computed places ---- */
/* of: rows with their own images; 0: none */
typedef struct Places { LsShape x, at, y; int64_t of; } Places;
static const Places samples[] = {
    {{3, {2, 3, 9}}, {3, {2, 40, 1}}, {3, {2, 3, 40}}, 0},
    {{4, {2, 5, 4, 7}}, {4, {2, 9, 11, 2}}, {4, {2, 5, 9, 11}}, 0},
    {{4, {3, 2, 6, 5}}, {4, {7, 4, 3, 2}}, {4, {7, 2, 4, 3}}, 7},
    {{5, {1, 2, 3, 4, 1}}, {3, {1, 30, 3}}, {3, {1, 2, 30}}, 0},
};

/* Places inside, on elements, on halves and up to 3 elements outside; one is far away. */
static LsValueId places(Rig *r, const Places *t, const LsSampleAttr *attr)
{
    LsValueId at = rig_operand(r, LS_REAL, LS_ROW, t->at);
    int axes = t->x.rank - 2;
    for (int64_t i = 0; i < ls_count(&t->at); i++) {
        int axis = (int)(i % axes);
        double n = (double)t->x.dim[2 + (attr->last_first ? axes - 1 - axis : axis)];
        double v = (n + 6) * (rig_random(r) + 1) / 2 - 3.5;
        rig_set(r, at, i, i % 7 == 0 ? floor(v) : i % 7 == 1 ? floor(v) + 0.5 : v);
    }
    if (attr->beyond == LS_BEYOND_NOTHING)
        rig_set(r, at, 1, 1e30);
    return at;
}

static LsValueId images(Rig *r, const Places *t)
{
    LsValueId of = rig_operand(r, LS_I64, LS_ROW, SHAPE(t->of));
    for (int64_t i = 0; i < t->of; i++)
        rig_set(r, of, i, (double)(i * 5 % (t->x.dim[0] + 1)));     /* one after the last */
    return of;
}

static void sample_all(Rig *r, const Places *t, const LsAttr *attr)
{
    LsValueId x = rig_operand(r, LS_REAL, LS_ROW, t->x), at = places(r, t, &attr->sample),
              of = {0},
              dy = rig_operand(r, LS_REAL, LS_ROW, t->y);
    if (t->of > 0)
        of = images(r, t);
    LsNodeId n = rig_node(r, LS_OP_SAMPLE, t->of > 0 ? 3 : 2, (LsValueId[]){x, at, of}, 1, attr);
    rig_result(r, n, 0, LS_REAL, LS_ROW, t->y);
    n = rig_node(r, LS_OP_SAMPLE_DX, t->of > 0 ? 3 : 2, (LsValueId[]){dy, at, of}, 1, attr);
    rig_result(r, n, 0, LS_REAL, LS_ROW, t->x);
    n = rig_node(r, LS_OP_SAMPLE_DAT, t->of > 0 ? 4 : 3, (LsValueId[]){dy, x, at, of}, 1, attr);
    rig_result(r, n, 0, LS_REAL, LS_ROW, t->at);
}

START_TEST(images_are_sampled_by_every_filter_and_edge)
{
    for (int mode = LS_SAMPLE_NEAREST; mode <= LS_SAMPLE_CUBIC; mode++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        for (size_t c = 0; c < sizeof samples / sizeof *samples; c++)
            for (int beyond = LS_BEYOND_NOTHING; beyond <= LS_BEYOND_BORDER; beyond++) {
                LsAttr attr = {.sample = {.mode = (LsSampleMode)mode, .beyond = (LsBeyond)beyond,
                                          .last_first = beyond % 2 == 0, .x = samples[c].x}};
                if (tests_do_all() || (c + (size_t)beyond + (size_t)mode) % 4 == 0)
                    sample_all(&r, &samples[c], &attr);
            }
        agree(&r, 2e-5);
        rig_close(&r);
    }
}
END_TEST

/* Boxes inside, across the border, of less than a pixel, empty, far away, too large, without a
 * place; and an image that does not exist. */
START_TEST(boxes_have_as_many_samples_as_they_are_large)
{
    static const double box[][4] = {{1, 2, 1.5, 0.7}, {-2.5, -1, 2.2, 3.1}, {3, 3, 0.2, 0.25},
                                    {2, 2, -1, 1},    {900, 0, 1, 1},       {-1000, -60, 700, 35},
                                    {0, 0, 2e9, 1},   {NAN, 0, 1, 1},       {4, 5, 1, 1},
                                    {0, 0, NAN, 1}};
    enum { BOXES = sizeof box / sizeof *box, HIGH = 2, WIDE = 3 };
    const LsShape x = SHAPE(2, 3, 6, 9), y = SHAPE(BOXES, 3, HIGH, WIDE);
    Rig r;
    rig_open(&r, real_bytes[_i]);
    LsValueId in[] = {rig_operand(&r, LS_REAL, LS_ROW, x),
                      rig_operand(&r, LS_REAL, LS_ROW, SHAPE(BOXES, 4)),
                      rig_operand(&r, LS_I64, LS_ROW, SHAPE(BOXES))};
    for (int i = 0; i < BOXES; i++) {
        for (int k = 0; k < 4; k++)
            rig_set(&r, in[1], 4 * i + k, box[i][k]);
        rig_set(&r, in[2], i, i == 8 ? 2 : i % 2);
    }
    const LsAttr at = {.roi = {.height = HIGH, .width = WIDE, .x = x}};
    rig_result(&r, rig_node(&r, LS_OP_ROI_MEAN, 3, in, 1, &at), 0, LS_REAL, LS_ROW, y);
    in[0] = rig_operand(&r, LS_REAL, LS_ROW, y);
    rig_result(&r, rig_node(&r, LS_OP_ROI_MEAN_DX, 3, in, 1, &at), 0, LS_REAL, LS_ROW, x);
    agree(&r, 2e-5);
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_index");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, rows_are_scattered_in_the_order_of_the_indices, 0, 2);
    tcase_add_test(t, integers_and_bools_are_scattered);
    tcase_add_loop_test(t, elements_are_gathered_and_scattered_by_their_own_index, 0, 2);
    tcase_add_loop_test(t, scans_run_along_any_axis_from_either_end, 0, 2);
    tcase_add_loop_test(t, segments_are_runs_of_equal_numbers, 0, 2);
    tcase_add_loop_test(t, largest_elements_come_in_order_and_ties_by_index, 0, 2);
    tcase_add_loop_test(t, images_are_sampled_by_every_filter_and_edge, 0, 2);
    tcase_add_loop_test(t, boxes_have_as_many_samples_as_they_are_large, 0, 2);
    return run_tests("kernels_index", t);
}
