/* tests/compiler/test_onnx_control.c -- bodies of If, Loop, Scan, SequenceMap and FlexAttention:
 * what is chosen, how often it is written out, which values and weights it reads, and what is
 * refused. */
#include "tests/support/eval_file.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

/* y = Relu(x W) is the value that bodies read. */

static void ints(const char *name, const char *dims, size_t n, const int64_t v[])
{
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, name, MAKE_I64, dims, v, n * sizeof *v));
}

static void flag(const char *name, uint8_t v)
{
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, name, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "", &v, 1));
}

static void reals(const char *name, const char *dims, size_t n, const float v[])
{
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", name);
    p->n_input = 0;
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, dims, v, n * sizeof *v));
}

static Onnx__ValueInfoProto *value_named(const char *name)
{
    Onnx__ValueInfoProto *v = MAKE_NEW(&mk, Onnx__ValueInfoProto, onnx__value_info_proto__init);
    v->name = (char *)name;
    return v;
}

/* A body in that attribute; names are separated by blanks. */
static Onnx__GraphProto *body(Onnx__NodeProto *p, const char *attribute, const char *in,
                              const char *out)
{
    Onnx__GraphProto *g = MAKE_NEW(&mk, Onnx__GraphProto, onnx__graph_proto__init);
    char **list = NULL;
    size_t n = 0;
    make_names(&mk, &list, &n, in);
    for (size_t i = 0; i < n; i++)
        MAKE_PUSH(&mk, g->input, g->n_input, value_named(list[i]));
    n = 0;
    make_names(&mk, &list, &n, out);
    for (size_t i = 0; i < n; i++)
        MAKE_PUSH(&mk, g->output, g->n_output, value_named(list[i]));
    make_attr(&mk, p, attribute, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = g;
    return g;
}

static Onnx__NodeProto *step(Onnx__GraphProto *g, const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *p = make_body(&mk, op, in, out);
    if (in[0] == '\0')
        p->n_input = 0;
    MAKE_PUSH(&mk, g->node, g->n_node, p);
    return p;
}

static void own_weight(Onnx__GraphProto *g, const char *name, const char *dims, size_t n)
{
    make_weight(&mk, name, dims, n);    /* the last of the graph's */
    MAKE_PUSH(&mk, g->initializer, g->n_initializer,
              mk.g->initializer[--mk.g->n_initializer]);
}

static void expect(const LsGraph *g, const char *name, size_t n, const double v[])
{
    LsValueId at = named(g, name);
    ck_assert_msg(ls_is(at) && ls_is_const(g, at), "%s is no constant", name);
    ck_assert_int_eq(ls_count(ls_shape(g, at)), (int64_t)n);
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(ls_const_at(g, at, (int64_t)i), v[i], 1e-6);
}
#define EXPECT(g, name, ...) \
    expect(g, name, sizeof (double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

static void output_of(const char *name, int type)
{
    MAKE_PUSH(&mk, mk.g->output, mk.g->n_output, make_value(&mk, name, type, NULL));
}

static void refused(LsErrId id, const char *says)
{
    refuse(id, id == LS_E_UNSUPPORTED ? LS_EXIT_UNSUPPORTED : LS_EXIT_MODEL, says);
}

static uint32_t count_op(const LsGraph *g, LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

/* ---- If ---- */

/* z = c ? y V : -y; V is an initializer of the graph that only the branch reads. */
static Onnx__NodeProto *branches(const char *condition)
{
    make_weight(&mk, "v", "4x4", 16);
    Onnx__NodeProto *p = make_node(&mk, "If", condition, "z");
    step(body(p, "then_branch", "", "t"), "MatMul", "y v", "t");
    step(body(p, "else_branch", "", "t"), "Neg", "y", "t");
    make_output(&mk, "z");
    return p;
}

START_TEST(the_branch_of_a_known_condition_stands_in_the_graph)
{
    flag("c", _i != 0);
    branches("c");
    LsGraph *g = import_well();
    ck_assert_uint_eq(count_op(g, LS_OP_MATMUL), _i != 0 ? 2 : 1);
    ck_assert_uint_eq(count_op(g, LS_OP_NEG), _i != 0 ? 0 : 1);
    ck_assert_int_eq(kind(g, "v"), LS_V_PARAM);
    ck_assert(ls_shape(g, named(g, "z"))->dim[1] == 4);
}
END_TEST

START_TEST(a_condition_of_shapes_is_known)
{
    ints("two", "", 1, (int64_t[]){2});
    ints("first", "", 1, (int64_t[]){0});
    make_node(&mk, "Shape", "y", "s");
    make_node(&mk, "Gather", "s first", "n");
    make_node(&mk, "Equal", "n two", "c");
    branches("c");
    ck_assert_uint_eq(count_op(import_well(), LS_OP_MATMUL), 2);
}
END_TEST

START_TEST(a_condition_of_run_time_is_refused)
{
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input,
              make_value(&mk, "c", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, ""));
    branches("c");
    refused(LS_E_NOT_CONST, "the condition 'c' is computed at run time");
}
END_TEST

/* ---- Loop ---- */

/* r, all = Loop(m, c, y): h = Relu(h U), which is also collected; U is the body's own. */
static Onnx__GraphProto *loop(const char *in, const char *made_condition)
{
    Onnx__NodeProto *p = make_node(&mk, "Loop", in, "r all");
    Onnx__GraphProto *b = body(p, "body", "i going h",
                               ls_arena_printf(mk.cx.arena, "%s h2 h2", made_condition));
    own_weight(b, "u", "4x4", 16);
    step(b, "Identity", "going", "still");
    step(b, "MatMul", "h u", "hu");
    step(b, "Relu", "hu", "h2");
    make_output(&mk, "r");
    make_output(&mk, "all");
    return b;
}

START_TEST(iterations_are_written_out_and_share_the_weights_of_the_body)
{
    ints("m", "", 1, (int64_t[]){3});
    loop("m  y", "still");
    LsGraph *g = import_well();
    ck_assert_uint_eq(count_op(g, LS_OP_MATMUL), 4);
    ck_assert_int_eq(kind(g, "u"), LS_V_PARAM);
    ck_assert(ls_shape_same(ls_shape(g, named(g, "all")), &(LsShape){3, {3, 2, 4}}));
    ck_assert(ls_shape_same(ls_shape(g, named(g, "r")), &(LsShape){2, {2, 4}}));
}
END_TEST

START_TEST(weights_of_a_body_are_stored_in_the_evaluation_form)
{
    unsigned char *packed, *bytes;
    LsOnnxSlot *slot;
    uint32_t nslot;
    size_t nbytes;
    ints("m", "", 1, (int64_t[]){3});
    loop("m  y", "still");
    size_t n = make_pack(&mk, &packed);
    make_write(&mk, packed, n);
    ck_assert_ptr_nonnull(ls_onnx_import(&mk.cx, mk.path, &mk.o));
    ck_assert_msg(eval_file(&mk.cx, mk.path, &mk.o, &bytes, &nbytes, &slot, &nslot), "%s",
                  make_log(&mk));
    ck_assert_uint_eq(nslot, 2);
    make_write(&mk, bytes, nbytes);
    LsGraph *g = ls_onnx_import(&mk.cx, mk.path, &mk.o);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert_int_eq(kind(g, "u"), LS_V_PARAM);
}
END_TEST

START_TEST(bodies_may_call_their_weights_alike)
{
    ints("m", "", 1, (int64_t[]){2});
    for (int k = 0; k < 2; k++) {
        Onnx__NodeProto *p = make_node(&mk, "Loop", k == 0 ? "m  y" : "m  a", k == 0 ? "a" : "b");
        p->name = (char *)(k == 0 ? "one" : "other");
        Onnx__GraphProto *b = body(p, "body", "i going h", "going h2");
        own_weight(b, "w2", "4x4", 16);
        step(b, "MatMul", "h w2", "h2");
    }
    make_output(&mk, "b");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "one/w2"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "other/w2"), LS_V_PARAM);
}
END_TEST

/* s = 1; while (i < limit) s = s * 2 + i, by a condition that the body computes. */
START_TEST(a_loop_ends_when_its_known_condition_is_false)
{
    ints("limit", "", 1, (int64_t[]){3});
    ints("one", "", 1, (int64_t[]){1});
    ints("s0", "", 1, (int64_t[]){1});
    flag("c", 1);
    Onnx__NodeProto *p = make_node(&mk, "Loop", "  c s0", "s each");
    Onnx__GraphProto *b = body(p, "body", "i going s_in", "more s_out i");
    step(b, "Add", "s_in s_in", "twice");
    step(b, "Add", "twice i", "s_out");
    step(b, "Add", "i one", "next");
    step(b, "Less", "next limit", "more");
    output_of("s", MAKE_I64);
    output_of("each", MAKE_I64);
    LsGraph *g = import_well();
    EXPECT(g, "s", 2 * (2 * (2 * 1 + 0) + 1) + 2);
    EXPECT(g, "each", 0, 1, 2);
}
END_TEST

/* In iteration 1 alone, the branch's name hides the loop's. */
START_TEST(bodies_in_bodies_see_the_names_around_them)
{
    ints("m", "", 1, (int64_t[]){3});
    ints("one", "", 1, (int64_t[]){1});
    ints("ten", "", 1, (int64_t[]){10});
    ints("s0", "", 1, (int64_t[]){0});
    Onnx__NodeProto *p = make_node(&mk, "Loop", "m  s0", "s");
    Onnx__GraphProto *b = body(p, "body", "i going s_in", "going s_out");
    step(b, "Equal", "i one", "is_one");
    step(b, "Add", "s_in i", "sum");
    Onnx__NodeProto *q = step(b, "If", "is_one", "s_out");
    Onnx__GraphProto *yes = body(q, "then_branch", "", "sum2");
    step(yes, "Add", "sum ten", "sum2");
    step(body(q, "else_branch", "", "sum2"), "Identity", "sum", "sum2");
    output_of("s", MAKE_I64);
    EXPECT(import_well(), "s", 0 + 1 + 10 + 2);
}
END_TEST

/* A named real would be a parameter, but no program can run one step more as it is trained. So is
 * ONNX's Range written out as a function. */
START_TEST(numbers_that_decide_how_often_a_loop_runs_are_constants)
{
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "steps", MAKE_FLOAT, "", &(float){2.5f}, 4));
    make_node(&mk, "Ceil", "steps", "whole");
    make_int(&mk, make_node(&mk, "Cast", "whole", "m"), "to", MAKE_I64);
    make_node(&mk, "Mul", "y steps", "scaled");
    loop("m  scaled", "still");
    LsGraph *g = import_well();
    ck_assert(ls_shape_same(ls_shape(g, named(g, "all")), &(LsShape){3, {3, 2, 4}}));
    ck_assert_int_eq(kind(g, "steps"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
}
END_TEST

START_TEST(a_loop_whose_length_is_not_known_is_refused)
{
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input, make_value(&mk, "m", MAKE_I64, ""));
    loop("m  y", "still");
    refused(LS_E_NOT_CONST, "the number of iterations ('m') must be known");
}
END_TEST

START_TEST(a_loop_that_looks_at_the_data_is_refused)
{
    ints("m", "", 1, (int64_t[]){3});
    Onnx__GraphProto *b = loop("m  y", "more");
    make_weight(&mk, "limit", "", 1);
    make_int(&mk, step(b, "ReduceMax", "h2", "most"), "keepdims", 0);
    step(b, "Less", "most limit", "more");
    refused(LS_E_NOT_CONST,
           "the condition after iteration 0 must be known at compile time");
}
END_TEST

START_TEST(a_loop_without_an_end_is_refused)
{
    ints("m", "", 1, (int64_t[]){INT64_MAX});
    ints("s0", "", 1, (int64_t[]){0});
    Onnx__NodeProto *p = make_node(&mk, "Loop", "m  s0", "s");
    step(body(p, "body", "i going s_in", "going s_out"), "Add", "s_in i", "s_out");
    make_output(&mk, "s");
    refused(LS_E_UNSUPPORTED, "bodies have more than 65536 nodes");
}
END_TEST

/* A function whose body has an If, which reads the function's own values and an initializer inside
 * it. */
START_TEST(functions_may_have_bodies)
{
    flag("c", 1);
    Onnx__FunctionProto *f = make_function(&mk, "F", "a c", "r");
    MAKE_PUSH(&mk, f->opset_import, f->n_opset_import, mk.m->opset_import[0]);
    Onnx__NodeProto *add = make_body(&mk, "Add", "a a", "t");
    MAKE_PUSH(&mk, f->node, f->n_node, add);
    Onnx__NodeProto *p = make_body(&mk, "If", "c", "r");
    MAKE_PUSH(&mk, f->node, f->n_node, p);
    Onnx__GraphProto *b = body(p, "then_branch", "", "u");
    own_weight(b, "k", "", 1);
    step(b, "Mul", "t k", "u");
    step(body(p, "else_branch", "", "u"), "Neg", "t", "u");
    for (int i = 0; i < 2; i++) {
        reals(i == 0 ? "p" : "q", "", 1, &(float){(float)(3 + i)});
        make_node(&mk, "F", i == 0 ? "p c" : "q c", i == 0 ? "f1" : "f2")->domain = "local";
        make_output(&mk, i == 0 ? "f1" : "f2");
    }
    LsGraph *g = import_well();
    EXPECT(g, "f1", 2 * 3 * 0.5);
    EXPECT(g, "f2", 2 * 4 * 0.5);
}
END_TEST

/* ---- FlexAttention ---- */

/* z: y attends to itself. */
static Onnx__NodeProto *flex(void)
{
    Onnx__OperatorSetIdProto *set =
        MAKE_NEW(&mk, Onnx__OperatorSetIdProto, onnx__operator_set_id_proto__init);
    set->domain = (char *)"ai.onnx.preview";
    set->has_version = set->version = 1;
    MAKE_PUSH(&mk, mk.m->opset_import, mk.m->n_opset_import, set);
    ints("four", "4", 4, (int64_t[]){1, 1, 2, 4});
    make_node(&mk, "Reshape", "y four", "q");
    Onnx__NodeProto *p = make_node(&mk, "FlexAttention", "q q q", "z");
    p->domain = (char *)"ai.onnx.preview";
    make_output(&mk, "z");
    return p;
}

START_TEST(scores_of_flex_attention_pass_through_its_bodies)
{
    Onnx__NodeProto *p = flex();
    if (_i == 1) {
        Onnx__GraphProto *b = body(p, "score_mod", "scores", "out");
        own_weight(b, "slope", "2x2", 4);
        step(b, "Mul", "scores slope", "out");
        step(body(p, "prob_mod", "p", "p2"), "Tanh", "p", "p2");
    }
    LsGraph *g = import_well();
    ck_assert_uint_eq(count_op(g, LS_OP_ATTENTION), _i == 0);
    ck_assert_uint_eq(count_op(g, LS_OP_TANH), _i);
    ck_assert(ls_shape(g, named(g, "z"))->dim[3] == 4);
    if (_i == 1)
        ck_assert_int_eq(kind(g, "slope"), LS_V_PARAM);
}
END_TEST

START_TEST(a_body_of_flex_attention_keeps_the_shape)
{
    Onnx__NodeProto *p = flex();
    make_int(&mk, step(body(p, "score_mod", "scores", "out"), "ReduceMax", "scores", "out"),
             "keepdims", 1);
    refused(LS_E_SHAPE, "'score_mod' gives float of shape 1x1x1x1, not 1x1x2x2");
}
END_TEST

/* ---- Scan ---- */

static void int_list(Onnx__NodeProto *p, const char *name, size_t n, const int64_t v[])
{
    Onnx__AttributeProto *a = make_attr(&mk, p, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    for (size_t i = 0; i < n; i++)
        MAKE_PUSH(&mk, a->ints, a->n_ints, v[i]);
}
#define INT_LIST(p, name, ...) \
    int_list(p, name, sizeof (int64_t[]){__VA_ARGS__} / 8, (int64_t[]){__VA_ARGS__})

/* Columns of a 2x3 matrix from the back, running sums. */
static Onnx__NodeProto *scan(void)
{
    reals("s0", "2", 2, (float[]){0, 100});
    reals("x2", "2x3", 6, (float[]){1, 2, 3, 4, 5, 6});
    Onnx__NodeProto *p = make_node(&mk, "Scan", "s0 x2", "s each");
    Onnx__GraphProto *b = body(p, "body", "s_in col", "s_out copy");
    step(b, "Add", "s_in col", "s_out");
    step(b, "Identity", "s_out", "copy");
    make_int(&mk, p, "num_scan_inputs", 1);
    make_output(&mk, "s");
    make_output(&mk, "each");
    return p;
}

START_TEST(a_scan_follows_its_axes_and_directions)
{
    Onnx__NodeProto *p = scan();
    INT_LIST(p, "scan_input_axes", 1);
    INT_LIST(p, "scan_input_directions", 1);
    INT_LIST(p, "scan_output_axes", -1);
    if (_i == 1)
        INT_LIST(p, "scan_output_directions", 1);
    LsGraph *g = import_well();
    EXPECT(g, "s", 6, 115);
    if (_i == 0)
        EXPECT(g, "each", 3, 5, 6, 106, 111, 115);
    else
        EXPECT(g, "each", 6, 5, 3, 115, 111, 106);
}
END_TEST

START_TEST(attributes_of_a_scan_are_checked)
{
    INT_LIST(scan(), "scan_input_axes", 1, 0);
    refused(LS_E_ATTR, "scan_input_axes");
}
END_TEST

START_TEST(a_scan_over_an_axis_that_is_not_there_is_refused)
{
    INT_LIST(scan(), "scan_input_axes", 2);
    refused(LS_E_ATTR, "axis 2 is outside a tensor of rank 2");
}
END_TEST

/* ---- sequences and optional values ---- */

/* Items 2 1 3 4 less the last; mapped to twice as much plus y's number of rows. */
START_TEST(sequences_are_changed_measured_and_mapped)
{
    ints("zero", "", 1, (int64_t[]){0});
    for (int i = 1; i <= 4; i++)
        reals(ls_arena_printf(mk.cx.arena, "n%d", i), "1", 1, &(float){(float)i});
    make_node(&mk, "SequenceEmpty", "", "e")->n_input = 0;
    make_node(&mk, "SequenceInsert", "e n1", "l1");
    make_node(&mk, "SequenceInsert", "l1 n2 zero", "l2");
    make_node(&mk, "SequenceInsert", "l2 n3", "l3");
    make_node(&mk, "SequenceInsert", "l3 n4", "l4");
    make_node(&mk, "SequenceErase", "l4", "l4_less");
    make_node(&mk, "Identity", "l4_less", "l5");
    make_node(&mk, "SequenceLength", "l5", "len");
    Onnx__NodeProto *p = make_node(&mk, "SequenceMap", "l5 l5 n3", "mapped");
    Onnx__GraphProto *b = body(p, "body", "a b c", "r");
    step(b, "Add", "a b", "ab");
    step(b, "Add", "ab c", "r");
    make_int(&mk, make_node(&mk, "ConcatFromSequence", "mapped", "z"), "axis", 0);
    output_of("len", MAKE_I64);
    make_output(&mk, "z");
    LsGraph *g = import_well();
    EXPECT(g, "len", 3);
    EXPECT(g, "z", 7, 5, 9);
}
END_TEST

START_TEST(an_optional_value_is_known_to_be_there_or_not)
{
    make_node(&mk, "Optional", "", "none")->n_input = 0;
    make_node(&mk, "Optional", "y", "some");
    make_node(&mk, "Identity", "none", "still_none");
    make_node(&mk, "OptionalHasElement", "still_none", "a");
    make_node(&mk, "OptionalHasElement", "some", "b");
    make_node(&mk, "OptionalGetElement", "some", "z");
    output_of("a", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL);
    output_of("b", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL);
    make_output(&mk, "z");
    LsGraph *g = import_well();
    EXPECT(g, "a", 0);
    EXPECT(g, "b", 1);
}
END_TEST

START_TEST(an_empty_optional_value_is_not_read)
{
    make_node(&mk, "Optional", "", "none")->n_input = 0;
    if (_i == 0)
        make_node(&mk, "OptionalGetElement", "none", "z");
    else
        make_node(&mk, "Neg", "none", "z");
    make_output(&mk, "z");
    refused(LS_E_TYPE, _i == 0 ? "the optional value is empty"
                               : "operand 0 is the empty optional value 'none'");
}
END_TEST

/* ---- bodies that are wrong ---- */

static const struct { const char *in, *out, *op, *says; LsErrId id; } wrong[] = {
    {"i going", "going h2", "Neg", "'body' takes 2 values", LS_E_NAME},
    {"i going h", "going", "Neg", "gives 1", LS_E_NAME},
    {"i going h", "going h2", "Dance", "operator Dance is not supported", LS_E_UNSUPPORTED},
    {"i going i", "going h2", "Neg", "no name of its own", LS_E_NAME},
    {"i going h2", "going h2", "Neg", "'h2' is made twice in the body", LS_E_NAME},
};

START_TEST(a_body_that_does_not_fit_its_node_is_refused)
{
    ints("m", "", 1, (int64_t[]){3});
    Onnx__NodeProto *p = make_node(&mk, "Loop", "m  y", "r");
    step(body(p, "body", wrong[_i].in, wrong[_i].out), wrong[_i].op, "y", "h2");
    make_output(&mk, "r");
    refused(wrong[_i].id, wrong[_i].says);
}
END_TEST

START_TEST(a_body_that_reads_what_nobody_makes_is_refused)
{
    ints("m", "", 1, (int64_t[]){3});
    Onnx__NodeProto *p = make_node(&mk, "Loop", "m  y", "r");
    step(body(p, "body", "i going h", "going h2"), "Add", "h nothing", "h2");
    make_output(&mk, "r");
    refused(LS_E_NAME, "reads 'nothing', which no node");
}
END_TEST

static void setup_17(void)
{
    setup();
    mk.m->opset_import[0]->version = 17;
}

int main(void)
{
    TCase *tc = tcase_create("all");
    tcase_add_checked_fixture(tc, setup_17, teardown);
    tcase_add_loop_test(tc, the_branch_of_a_known_condition_stands_in_the_graph, 0, 2);
    tcase_add_test(tc, a_condition_of_shapes_is_known);
    tcase_add_test(tc, a_condition_of_run_time_is_refused);
    tcase_add_test(tc, iterations_are_written_out_and_share_the_weights_of_the_body);
    tcase_add_test(tc, weights_of_a_body_are_stored_in_the_evaluation_form);
    tcase_add_test(tc, bodies_may_call_their_weights_alike);
    tcase_add_test(tc, a_loop_ends_when_its_known_condition_is_false);
    tcase_add_test(tc, bodies_in_bodies_see_the_names_around_them);
    tcase_add_test(tc, numbers_that_decide_how_often_a_loop_runs_are_constants);
    tcase_add_test(tc, a_loop_whose_length_is_not_known_is_refused);
    tcase_add_test(tc, a_loop_that_looks_at_the_data_is_refused);
    tcase_add_test(tc, a_loop_without_an_end_is_refused);
    tcase_add_test(tc, functions_may_have_bodies);
    tcase_add_loop_test(tc, scores_of_flex_attention_pass_through_its_bodies, 0, 2);
    tcase_add_test(tc, a_body_of_flex_attention_keeps_the_shape);
    tcase_add_loop_test(tc, a_scan_follows_its_axes_and_directions, 0, 2);
    tcase_add_test(tc, attributes_of_a_scan_are_checked);
    tcase_add_test(tc, a_scan_over_an_axis_that_is_not_there_is_refused);
    tcase_add_test(tc, sequences_are_changed_measured_and_mapped);
    tcase_add_test(tc, an_optional_value_is_known_to_be_there_or_not);
    tcase_add_loop_test(tc, an_empty_optional_value_is_not_read, 0, 2);
    tcase_add_loop_test(tc, a_body_that_does_not_fit_its_node_is_refused, 0,
                        sizeof wrong / sizeof *wrong);
    tcase_add_test(tc, a_body_that_reads_what_nobody_makes_is_refused);
    return run_tests("onnx_control", tc);
}
