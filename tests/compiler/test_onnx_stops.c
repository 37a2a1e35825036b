/* tests/compiler/test_onnx_stops.c -- gradients that the module stops: by the exporter's notes of
 * detach(), and by --stop-gradient; and buffers that move by themselves. */
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx/onnx_export.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/patterns/patterns.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

static bool said(const char *text) { return strstr(make_log(&mk), text) != NULL; }

static void note(Onnx__NodeProto *p, const char *key, const char *value)
{
    make_meta(&mk, &p->base, 9, key, value);
}

static const char call[] =
    "%detach : [num_users=1] = call_function[target=torch.ops.aten.detach.default](args = (%y,), "
    "kwargs = {})";

/* y = Relu(x w) of the small model; d = Identity(y), then a second weight. */
static Onnx__NodeProto *make_tail(void)
{
    Onnx__NodeProto *p = make_node(&mk, "Identity", "y", "d");
    make_weight(&mk, "v", "4x3", 12);
    make_node(&mk, "MatMul", "d v", "z");
    mk.g->n_output = 0;
    make_output(&mk, "z");
    return p;
}

static void stop(const char *glob)
{
    static const char *list[1];
    list[0] = glob;
    mk.o.stop = list;
    mk.o.nstop = 1;
}

/* The parameters that get a gradient: "w v", in file order. */
static const char *taught(void)
{
    static char text[64];
    LsGraph *g = import_well();
    ck_assert(ls_loss(&mk.cx, g, &(LsLossOptions){.kind = LS_LOSS_MSE}));
    ck_assert_msg(ls_autodiff(&mk.cx, g), "%s", make_log(&mk));
    text[0] = '\0';
    for (uint32_t k = 0; k < g->ngrad; k++)
        sprintf(text + strlen(text), "%s%s", k > 0 ? " " : "", g->value[g->grad[k].param.i].name);
    return text;
}

START_TEST(a_noted_detach_stops_the_gradient)
{
    Onnx__NodeProto *p = make_tail();
    ck_assert_str_eq(taught(), "w v");
    note(p, LS_META_CALL, call);
    ck_assert_str_eq(taught(), "v");
    ck_assert(said("the gradient of parameter 'w' is stopped on every way"));
    LsGraph *g = import_well();
    ck_assert_uint_eq(g->source.decisions->nstop, 1);
    ck_assert_str_eq(
        ls_stops_text(mk.cx.arena, g->source.decisions, false),
        "the gradient of 1 value is stopped as in the module, by the exporter's notes ('d')");
    ck_assert_ptr_null(ls_stops_text(mk.cx.arena, g->source.decisions, true));
}
END_TEST

START_TEST(the_classes_tell_a_detach_where_the_call_is_missing)
{
    Onnx__NodeProto *p = make_tail();
    note(p, LS_META_CLASSES, "['__main__.Net', 'aten.detach.default']");
    ck_assert_str_eq(taught(), "v");
}
END_TEST

START_TEST(another_call_within_a_module_of_that_name_stops_nothing)
{
    Onnx__NodeProto *p = make_tail();
    note(p, LS_META_CLASSES, "['aten.detach.default', 'aten.alias.default']");
    ck_assert_ptr_nonnull(strstr(taught(), "w"));
}
END_TEST

START_TEST(globs_name_values_and_nodes)
{
    Onnx__NodeProto *p = make_tail();
    p->name = ls_arena_strdup(mk.cx.arena, "the_node");
    stop("d");
    ck_assert_str_eq(taught(), "v");
    stop("the_n*");
    ck_assert_str_eq(taught(), "v");
    stop("y");                  /* not an Identity */
    ck_assert_str_eq(taught(), "v");
    stop("w");                  /* an initializer is frozen by that */
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "w"), LS_V_STATE);
}
END_TEST

START_TEST(stopping_wins_over_train_for_an_initializer)
{
    mk.o.train = (const char *[]){"w"};
    mk.o.ntrain = 1;
    stop("w");
    ck_assert_int_eq(kind(import_well(), "w"), LS_V_STATE);
}
END_TEST

START_TEST(a_glob_without_a_match_is_an_error)
{
    stop("nobody*");
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "--stop-gradient nobody* matches no value and no node");
}
END_TEST

/* A copy of a parameter is a parameter of its own; its detached form is the parameter itself, and
 * so it is exported. */
START_TEST(a_detached_parameter_stays_the_parameter)
{
    unsigned char *packed;
    size_t n;
    uint32_t slots[2];
    Onnx__NodeProto *p = make_node(&mk, "Identity", "w", "copy");
    make_node(&mk, "MatMul", "x copy", "other");
    make_output(&mk, "other");
    ck_assert_int_eq(kind(import_well(), "copy"), LS_V_PARAM);
    for (int k = 0; k < 2; k++) {
        n = make_pack(&mk, &packed);
        make_write(&mk, packed, n);
        LsOnnxForm form;
        ck_assert_msg(ls_onnx_eval_form(&mk.cx, mk.path, &mk.o, &form), "%s", make_log(&mk));
        slots[k] = form.nslot;
        note(p, LS_META_CALL, call);
    }
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "copy"), LS_V_TEMP);
    ck_assert(g->value[named(g, "copy").i].stopped);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
    ck_assert_uint_eq(slots[1] + 1, slots[0]);
}
END_TEST

START_TEST(parameters_before_a_stop_are_marked)
{
    Onnx__NodeProto *p = make_tail();
    note(p, LS_META_CALL, call);
    make_node(&mk, "Add", "y y", "y2");
    make_node(&mk, "ReduceMean", "z", "a");
    make_node(&mk, "ReduceMean", "y2", "b2");
    make_node(&mk, "Add", "a b2", "l");
    mk.g->n_output = 0;
    make_output(&mk, "l");
    LsGraph *g = import_well();
    ck_assert(ls_patterns(&mk.cx, g));              /* passes rebuild the graph */
    ck_assert(ls_loss(&mk.cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    ck_assert_msg(ls_autodiff(&mk.cx, g), "%s", make_log(&mk));
    ck_assert(g->value[named(g, "w").i].stopped);
    ck_assert(!g->value[named(g, "v").i].stopped);
}
END_TEST

START_TEST(a_lost_detach_is_told)
{
    static const char reads[] =
        "%mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%detach_1, "
        "%detachment), kwargs = {})";
    make_tail();
    Onnx__NodeProto *p = mk.g->node[mk.g->n_node - 1];
    note(p, LS_META_CALL, reads);
    import_well();
    ck_assert(said("the module stops 1 gradient by detach(), and the exporter dropped it"));
    mk.cx.nwarning = 0;
    stop("d");
    import_well();
    ck_assert_int_eq(mk.cx.nwarning, 0);
}
END_TEST

START_TEST(a_detach_that_is_kept_is_not_lost)
{
    Onnx__NodeProto *p = make_tail();
    note(p, LS_META_CALL, call);
    note(mk.g->node[mk.g->n_node - 1], LS_META_CALL,
         "%mm : [num_users=1] = call_function[target=torch.ops.aten.mm.default]"
         "(args = (%detach, %p_v), kwargs = {})");
    import_well();
    ck_assert(!said("the exporter dropped"));
}
END_TEST

/* ---- buffers that move by themselves ---- */

/* A spectral norm with these names of weight and vector: u = W v / |W v| once, then W over u W
 * v. */
static void make_spectral(const char *weight, const char *vector)
{
    mk.g->n_initializer = mk.g->n_node = mk.g->n_output = 0;
    make_weight(&mk, weight, "3x3", 9);
    make_weight(&mk, vector, "3", 3);
    char text[200];
    snprintf(text, sizeof text, "%s %s", weight, vector);
    make_node(&mk, "MatMul", text, "mv");
    make_node(&mk, "ReduceL2", "mv", "norm");
    make_node(&mk, "Div", "mv norm", "unit");
    snprintf(text, sizeof text, "unit %s", weight);
    make_node(&mk, "MatMul", text, "sigma_");
    make_node(&mk, "ReduceMean", "sigma_", "sigma");
    snprintf(text, sizeof text, "%s sigma", weight);
    make_node(&mk, "Div", text, "weight");
    make_node(&mk, "MatMul", "x weight", "z");
    make_node(&mk, "ReduceMax", "z", "most");
    make_node(&mk, "Div", "z most", "y");           /* of the network, not of the norm */
    make_output(&mk, "y");
}

START_TEST(the_vectors_of_a_spectral_norm_are_known_by_their_names)
{
    static const char *const name[][2] = {
        {"l.weight_orig", "l.weight_u"},
        {"l.w_orig", "l.w_v"},
        {"0.parametrizations.weight.original", "0.parametrizations.weight.0._u"}};
    for (int k = 0; k < 3; k++) {
        make_spectral(name[k][0], name[k][1]);
        import_well();
        ck_assert(said(ls_arena_printf(
            mk.cx.arena,
            "1 buffer that the module itself changes in every step, as a spectral norm does, "
            "stays as in the file ('%s'); and gradients flow",
            name[k][1])));
        ck_assert(said("--stop-gradient unit stops the gradient"));
        ck_assert(!said("--stop-gradient y"));
        ck_assert(!said("--stop-gradient weight"));
    }
}
END_TEST

START_TEST(a_vector_without_its_weight_is_no_spectral_norm)
{
    make_spectral("l.weight", "l.weight_u");
    import_well();
    ck_assert(!said("the module itself changes"));
}
END_TEST

START_TEST(notes_name_the_buffers_that_move)
{
    make_spectral("kernel", "moving");
    make_meta(&mk, &mk.g->base, 16, LS_META_SIGNATURE,
              "\n# inputs\np_kernel: PARAMETER target='kernel'\n\n# outputs\n"
              "unit: BUFFER_MUTATION target='moving'\nadd: BUFFER_MUTATION "
              "target='n.num_batches_tracked'\ny: USER_OUTPUT\n");
    import_well();
    ck_assert(said("1 buffer that the module itself changes in every step, as a spectral norm "
                   "does, stays as in the file ('moving'); and"));
    ck_assert(said("--stop-gradient unit stops the gradient"));
    stop("unit");
    import_well();
    ck_assert(said("stays as in the file ('moving')\n"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("stops");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        a_noted_detach_stops_the_gradient,
        the_classes_tell_a_detach_where_the_call_is_missing,
        another_call_within_a_module_of_that_name_stops_nothing,
        globs_name_values_and_nodes,
        stopping_wins_over_train_for_an_initializer,
        a_glob_without_a_match_is_an_error,
        a_detached_parameter_stays_the_parameter,
        parameters_before_a_stop_are_marked,
        a_lost_detach_is_told,
        a_detach_that_is_kept_is_not_lost,
        the_vectors_of_a_spectral_norm_are_known_by_their_names,
        a_vector_without_its_weight_is_no_spectral_norm,
        notes_name_the_buffers_that_move,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("stops", tc);
}
