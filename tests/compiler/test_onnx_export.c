/* tests/compiler/test_onnx_export.c -- the evaluation form of a model file. */
#include "tests/support/onnx_make.h"
#include "tests/support/shared_file.h"
#include "tests/support/suite.h"

#include "tests/support/eval_file.h"

static Make mk;

static unsigned char *bytes;
static size_t nbytes;
static LsOnnxSlot *slot;
static uint32_t nslot;

static void setup(void) { make_small(&mk); }
static void teardown(void) { make_end(&mk); }

static Onnx__GraphProto *export_model(void)
{
    unsigned char *packed;
    size_t n = make_pack(&mk, &packed);
    make_write(&mk, packed, n);
    ck_assert_msg(eval_file(&mk.cx, mk.path, &mk.o, &bytes, &nbytes, &slot, &nslot), "%s",
                  make_log(&mk));
    Onnx__ModelProto *m = ls_onnx_unpack(&mk.cx, bytes, nbytes);
    ck_assert_ptr_nonnull(m);
    return m->graph;
}

static const Onnx__TensorProto *initializer(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (strcmp(g->initializer[i]->name, name) == 0)
            return g->initializer[i];
    ck_abort_msg("no initializer '%s'", name);
    return NULL;
}

static const LsOnnxSlot *slot_of(const char *name)
{
    for (uint32_t i = 0; i < nslot; i++)
        if (strcmp(slot[i].name, name) == 0)
            return &slot[i];
    ck_abort_msg("no slot '%s'", name);
    return NULL;
}

static uint32_t count_op(const Onnx__GraphProto *g, const char *op)
{
    uint32_t n = 0;
    for (size_t i = 0; i < g->n_node; i++)
        n += strcmp(g->node[i]->op_type, op) == 0;
    return n;
}

static float at_slot(const char *name, size_t i)
{
    float v;
    memcpy(&v, bytes + slot_of(name)->offset + i * sizeof v, sizeof v);
    return v;
}

START_TEST(a_slot_is_where_the_floats_of_a_weight_lie)
{
    export_model();
    ck_assert_uint_eq(nslot, 1);
    ck_assert_int_eq(slot_of("w")->bytes, 48);
    for (size_t i = 0; i < 12; i++)
        ck_assert_float_eq(at_slot("w", i), 0.5f * (float)(i + 1));
}
END_TEST

START_TEST(patched_bytes_are_read_back_as_the_new_weight)
{
    export_model();
    float v = 77;
    memcpy(bytes + slot_of("w")->offset + 5 * sizeof v, &v, sizeof v);
    make_write(&mk, bytes, nbytes);
    LsGraph *g = ls_onnx_import(&mk.cx, mk.path, &mk.o);
    ck_assert_ptr_nonnull(g);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind == LS_V_PARAM)
            ck_assert_double_eq(ls_const_at(g, (LsValueId){i}, 5), 77);
}
END_TEST

static Onnx__NodeProto *add_batch_norm(const char *out)
{
    make_weight(&mk, "scale", "4", 4);
    make_weight(&mk, "bias", "4", 4);
    make_weight(&mk, "mean", "4", 4);
    make_weight(&mk, "var", "4", 4);
    return make_node(&mk, "BatchNormalization", "y scale bias mean var", out);
}

START_TEST(batch_norm_before_opset_14_keeps_one_output)
{
    add_batch_norm("z m v sm sv");
    make_output(&mk, "z");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(g->n_node, 3);
    ck_assert_uint_eq(g->node[2]->n_output, 1);
    slot_of("mean");
    slot_of("var");
}
END_TEST

START_TEST(batch_norm_from_opset_14_loses_its_training_mode)
{
    mk.m->opset_import[0]->version = 15;
    Onnx__NodeProto *p = add_batch_norm("z m v");
    make_int(&mk, p, "training_mode", 1);
    make_float(&mk, p, "epsilon", 0.5f);
    make_output(&mk, "z");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(g->node[2]->n_output, 1);
    ck_assert_uint_eq(g->node[2]->n_attribute, 1);
    ck_assert_str_eq(g->node[2]->attribute[0]->name, "epsilon");
}
END_TEST

START_TEST(statistics_that_are_outputs_stay_outputs)
{
    mk.m->opset_import[0]->version = 15;
    make_int(&mk, add_batch_norm("z m v"), "training_mode", 1);
    make_output(&mk, "z");
    make_output(&mk, "v");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(count_op(g, "Identity"), 1);
    ck_assert_str_eq(g->node[3]->input[0], "var");
    ck_assert_str_eq(g->node[3]->output[0], "v");
}
END_TEST

START_TEST(dropout_loses_its_training_mode_and_the_constant_behind_it)
{
    unsigned char on = 1;
    float ratio = 0.25f;
    Onnx__NodeProto *r = make_node(&mk, "Constant", "", "ratio"),
                    *c = make_node(&mk, "Constant", "", "on");
    make_tensor_attr(&mk, r, "value", make_tensor(&mk, "", MAKE_FLOAT, "", &ratio, sizeof ratio));
    make_tensor_attr(&mk, c, "value",
                     make_tensor(&mk, "", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "", &on, 1));
    make_node(&mk, "Dropout", "y ratio on", "z");
    make_output(&mk, "z");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(count_op(g, "Constant"), 1);
    ck_assert_uint_eq(g->node[g->n_node - 1]->n_input, 2);
}
END_TEST

START_TEST(constants_with_axes_become_initializers)
{
    float data[4] = {1, 2, 3, 4};
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "4x1", data, sizeof data));
    make_node(&mk, "MatMul", "y v", "z");
    make_output(&mk, "z");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(count_op(g, "Constant"), 0);
    ck_assert_uint_eq(initializer(g, "v")->n_dims, 2);
    ck_assert_float_eq(at_slot("v", 2), 3);
}
END_TEST

START_TEST(light_weights_become_initializers)
{
    int64_t dims[2] = {4, 3};
    float fill = 0.125f;
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "shape", MAKE_I64, "2", dims, sizeof dims));
    Onnx__NodeProto *p = make_node(&mk, "ConstantOfShape", "shape", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "1", &fill, sizeof fill));
    make_node(&mk, "MatMul", "y v", "z");
    make_output(&mk, "z");
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(count_op(g, "ConstantOfShape"), 0);
    ck_assert_int_eq(slot_of("v")->bytes, 48);
    ck_assert_float_eq(at_slot("v", 11), 0.125f);
}
END_TEST

static void alias_weight(void)
{
    make_weight(&mk, "b1", "4", 4);
    make_node(&mk, "Identity", "b1", "b2");
    make_node(&mk, "Identity", "b2", "b3");
    make_node(&mk, "Add", "y b3", "z");
    make_output(&mk, "z");
}

START_TEST(untied_identities_have_slots_of_their_own)
{
    alias_weight();
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(count_op(g, "Identity"), 0);
    ck_assert_int_ne(slot_of("b1")->offset, slot_of("b3")->offset);
    ck_assert_float_eq(at_slot("b3", 3), 2);
}
END_TEST

START_TEST(tied_identities_stay_nodes)
{
    alias_weight();
    mk.o.tie_identity = true;
    ck_assert_uint_eq(count_op(export_model(), "Identity"), 2);
    ck_assert_uint_eq(nslot, 2);
}
END_TEST

START_TEST(external_data_moves_inside)
{
    float data[12] = {0};
    data[7] = 9;
    make_file(&mk, "w.bin", data, sizeof data);
    make_external(&mk, mk.g->initializer[0], "w.bin", NULL);
    const Onnx__TensorProto *w = initializer(export_model(), "w");
    ck_assert_uint_eq(w->n_external_data, 0);
    ck_assert_float_eq(at_slot("w", 7), 9);
}
END_TEST

START_TEST(doubles_leave_as_floats_everywhere)
{
    Onnx__TensorProto *t = mk.g->initializer[0];
    make_typed(t, MAKE_DOUBLE);
    for (int i = 0; i < 12; i++)
        MAKE_PUSH(&mk, t->double_data, t->n_double_data, 0.25 * i);
    mk.g->input[0] = make_value(&mk, "x", MAKE_DOUBLE, "2x3");
    mk.g->output[0] = make_value(&mk, "z", MAKE_DOUBLE, "2x4");
    make_int(&mk, make_node(&mk, "Cast", "y", "z"), "to", MAKE_DOUBLE);
    Onnx__GraphProto *g = export_model();
    ck_assert_int_eq(initializer(g, "w")->data_type, MAKE_FLOAT);
    ck_assert_int_eq(g->input[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    ck_assert_int_eq(g->output[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    ck_assert_int_eq(g->node[2]->attribute[0]->i, MAKE_FLOAT);
    ck_assert_float_eq(at_slot("w", 11), 2.75f);
}
END_TEST

enum { HALF = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 };

START_TEST(casts_to_16_bits_still_round_where_all_else_is_float)
{
    Onnx__TensorProto *t = mk.g->initializer[0];
    make_typed(t, HALF);
    for (int i = 0; i < 12; i++)
        MAKE_PUSH(&mk, t->int32_data, t->n_int32_data, 0x3c00);
    mk.g->output[0] = make_value(&mk, "z", HALF, "2x4");
    make_int(&mk, make_node(&mk, "Cast", "y", "z"), "to", HALF);
    Onnx__GraphProto *g = export_model();
    const Onnx__NodeProto *rounds = g->node[2], *widens = g->node[3];
    ck_assert_uint_eq(g->n_node, 4);
    ck_assert_int_eq(rounds->attribute[0]->i, HALF);
    ck_assert_int_eq(widens->attribute[0]->i, MAKE_FLOAT);
    ck_assert_str_eq(rounds->output[0], widens->input[0]);
    ck_assert_str_eq(widens->output[0], "z");
    ck_assert_int_eq(g->output[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    ck_assert_float_eq(at_slot("w", 11), 1);
}
END_TEST

START_TEST(casts_stay_where_weights_are_float)
{
    mk.g->output[0] = make_value(&mk, "z", HALF, "2x4");
    make_int(&mk, make_node(&mk, "Cast", "y", "z"), "to", HALF);
    Onnx__GraphProto *g = export_model();
    ck_assert_uint_eq(g->n_node, 3);
    ck_assert_int_eq(g->output[0]->type->tensor_type->elem_type, HALF);
}
END_TEST

START_TEST(a_constant_of_16_bits_makes_all_of_the_model_float)
{
    uint16_t half[4] = {0x3c00, 0x4000, 0x4200, 0x4400};
    mk.g->input[0] = make_value(&mk, "x", HALF, "2x3");
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "bias");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", HALF, "4", half, sizeof half));
    make_node(&mk, "Add", "y bias", "z");
    mk.g->output[0] = make_value(&mk, "z", HALF, "2x4");
    Onnx__GraphProto *g = export_model();
    ck_assert_int_eq(initializer(g, "bias")->data_type, MAKE_FLOAT);
    ck_assert_int_eq(g->input[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    ck_assert_int_eq(g->output[0]->type->tensor_type->elem_type, MAKE_FLOAT);
    ck_assert_float_eq(at_slot("bias", 3), 4);
}
END_TEST

START_TEST(dynamic_dimensions_and_names_stay)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "Nx3");
    mk.o.batch = 4;
    Onnx__GraphProto *g = export_model();
    ck_assert_str_eq(g->input[0]->type->tensor_type->shape->dim[0]->dim_param, "N");
    ck_assert_str_eq(g->node[1]->input[0], "h");
}
END_TEST

START_TEST(batch_norms_inside_functions_lose_their_training_mode)
{
    mk.m->opset_import[0]->version = 15;
    Onnx__FunctionProto *f = make_function(&mk, "Norm", "a s b m v", "o");
    Onnx__NodeProto *p = make_body(&mk, "BatchNormalization", "a s b m v", "o nm nv");
    make_int(&mk, p, "training_mode", 1);
    MAKE_PUSH(&mk, f->node, f->n_node, p);
    Onnx__NodeProto *c = add_batch_norm("z");
    c->op_type = "Norm";
    c->domain = "local";
    make_output(&mk, "z");
    export_model();
    Onnx__ModelProto *m = ls_onnx_unpack(&mk.cx, bytes, nbytes);
    ck_assert_uint_eq(m->functions[0]->node[0]->n_output, 1);
    ck_assert_uint_eq(m->functions[0]->node[0]->n_attribute, 0);
    ck_assert_uint_eq(nslot, 5);
}
END_TEST

/* Every parameter and statistic of the graph has a slot with exactly its data. */
START_TEST(what_is_trained_in_real_models_has_a_slot)
{
    static const char *const file[] = {
        "inputs/models/resnet18_w6.onnx", "inputs/models/densenet_bc_k6.onnx",
        "inputs/models/tiny_gpt.onnx", "inputs/models/opsets/tinycnn_op9_train.onnx",
        "inputs/models/opsets/tinycnn_op17_train.onnx", "inputs/thirdparty/mnist_cntk.onnx",
        "inputs/thirdparty/light/light_squeezenet.onnx",
    };
    char room[SHARED_PATH];
    const char *path = shared_file(room, file[_i]);
    if (path == NULL)
        return;
    LsGraph *g = ls_onnx_import(&mk.cx, path, &mk.o);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert(eval_file(&mk.cx, path, &mk.o, &bytes, &nbytes, &slot, &nslot));
    uint32_t found = 0;
    for (uint32_t i = 1; i < g->nvalue; i++) {
        const LsValue *v = &g->value[i];
        if (!ls_is_state(g, (LsValueId){i}))
            continue;
        const LsOnnxSlot *s = slot_of(v->name);
        ck_assert_int_eq(s->bytes, 4 * ls_count(&v->shape));
        ck_assert_msg(memcmp(bytes + s->offset, v->data, (size_t)s->bytes) == 0, "%s", v->name);
        found++;
    }
    ck_assert_uint_gt(found, 4);
    make_write(&mk, bytes, nbytes);
    LsImportOptions eval = {.training = false};
    LsGraph *e = ls_onnx_import(&mk.cx, mk.path, &eval);
    ck_assert_msg(e != NULL && ls_verify(&mk.cx, e), "%s", make_log(&mk));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("export");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        a_slot_is_where_the_floats_of_a_weight_lie,
        patched_bytes_are_read_back_as_the_new_weight,
        batch_norm_before_opset_14_keeps_one_output,
        batch_norm_from_opset_14_loses_its_training_mode,
        statistics_that_are_outputs_stay_outputs,
        dropout_loses_its_training_mode_and_the_constant_behind_it,
        constants_with_axes_become_initializers,
        light_weights_become_initializers,
        untied_identities_have_slots_of_their_own,
        tied_identities_stay_nodes,
        external_data_moves_inside,
        doubles_leave_as_floats_everywhere,
        casts_to_16_bits_still_round_where_all_else_is_float, casts_stay_where_weights_are_float,
        a_constant_of_16_bits_makes_all_of_the_model_float,
        dynamic_dimensions_and_names_stay,
        batch_norms_inside_functions_lose_their_training_mode,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    tcase_add_loop_test(tc, what_is_trained_in_real_models_has_a_slot, 0, 7);
    return run_tests("export", tc);
}
