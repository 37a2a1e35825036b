/* tests/runtime/test_export_narrow.c -- --export-precision: weights leave in 16 bits, with a Cast
 * each, and everything else as in the file of floats. */
#include "onnx.pb-c.h"
#include "tests/support/npz_util.h"
#include "runtime/trainer/export_narrow.h"
#include "runtime/trainer/export_trained.h"

#include <math.h>

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    HALF = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
    BRAIN = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16
};
enum { ROOM = 256, MEAN = 64 };         /* bytes of state; place of the statistic in it */

/* z = x w - mean: w [3, 4] is trained and perhaps listed as an input, mean [4] is a statistic. */
static struct {
    Onnx__ModelProto m;
    Onnx__GraphProto g;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__NodeProto node[2], *nodes[2];
    Onnx__TensorProto tensor[2], *tensors[2];
    Onnx__ValueInfoProto input[2], *inputs[2];
    char *in[2][2], *out[2][1];
    int64_t dim[2][2];
    float data[2][12];
} mk;

static unsigned char bytes[4096];
static LsStateTensor state[2];
static LsProgram p;
static LsMemory m;
static LsError e;

static void make_model(void)
{
    onnx__model_proto__init(&mk.m);
    onnx__graph_proto__init(&mk.g);
    onnx__operator_set_id_proto__init(&mk.opset);
    mk.m.graph = &mk.g;
    mk.m.opset_import = mk.opsets;
    mk.m.n_opset_import = 1;
    mk.opsets[0] = &mk.opset;
    mk.opset.has_version = true;
    mk.opset.version = 13;
    mk.g.node = mk.nodes, mk.g.n_node = 2;
    mk.g.initializer = mk.tensors, mk.g.n_initializer = 2;
    mk.g.input = mk.inputs, mk.g.n_input = 1;
    for (int k = 0; k < 2; k++) {
        Onnx__NodeProto *n = mk.nodes[k] = &mk.node[k];
        Onnx__TensorProto *t = mk.tensors[k] = &mk.tensor[k];
        Onnx__ValueInfoProto *v = mk.inputs[k] = &mk.input[k];
        onnx__node_proto__init(n);
        onnx__tensor_proto__init(t);
        onnx__value_info_proto__init(v);
        n->op_type = k == 0 ? "MatMul" : "Sub";
        n->input = mk.in[k], n->n_input = 2;
        n->output = mk.out[k], n->n_output = 1;
        t->name = k == 0 ? "w" : "mean";
        t->dims = mk.dim[k], t->n_dims = k == 0 ? 2 : 1;
        t->has_data_type = t->has_raw_data = true;
        t->data_type = FLOAT;
        t->raw_data = (ProtobufCBinaryData){k == 0 ? 48 : 16, (uint8_t *)mk.data[k]};
        v->name = k == 0 ? "x" : "w";
        for (int i = 0; i < 12; i++)
            mk.data[k][i] = 0.5f * (float)(i + 1 + 12 * k);
    }
    mk.in[0][0] = "x", mk.in[0][1] = "w", mk.out[0][0] = "y";
    mk.in[1][0] = "y", mk.in[1][1] = "mean", mk.out[1][0] = "z";
    mk.dim[0][0] = 3, mk.dim[0][1] = mk.dim[1][0] = 4;
}

static int64_t place_of(const void *data, size_t n)
{
    return (unsigned char *)memmem(bytes, p.file.bytes, data, n) - bytes;
}

static void open_program(void)
{
    ck_assert_uint_lt(onnx__model_proto__get_packed_size(&mk.m), sizeof bytes);
    p = (LsProgram){.about.model = "m.onnx",
                    .real_bytes = 4,
                    .state = state,
                    .nstate = 2,
                    .bytes.state = ROOM,
                    .bytes.arena = 64,
                    .file.onnx = bytes,
                    .file.bytes = onnx__model_proto__pack(&mk.m, bytes)};
    state[0] = (LsStateTensor){{.name = "w", .rank = 2, .dim = {3, 4}, .at = {LS_AT_STATE, 0}},
                               LS_STATE_PARAM, NULL,
                               place_of(mk.data[0], 48)};
    state[1] = (LsStateTensor){{.name = "mean", .rank = 1, .dim = {4}, .at = {LS_AT_STATE, MEAN}},
                               LS_STATE_STAT, NULL,
                               place_of(mk.data[1], 16)};
    ck_assert_msg(ls_memory_open(&m, &p, &e), "%s", e.text);
}

static float *weights(void) { return ls_memory_at(&m, state[0].t.at); }

/* The exported file, read back. */
static const Onnx__GraphProto *exported(LsDataType type)
{
    LsFile f;
    const LsAlphabet none = {{0}};
    const LsExportForm form = {.type = type};
    ck_assert_msg(ls_export(&m, 0, &none, &form, "out.onnx", &e)
                      && ls_file_map(&f, "out.onnx", &e),
                  "%s", e.text);
    const Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, f.size, f.data);
    ck_assert_ptr_nonnull(model);
    ls_file_unmap(&f);
    return model->graph;
}

static const Onnx__TensorProto *initializer(const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (strcmp(g->initializer[i]->name, name) == 0)
            return g->initializer[i];
    ck_abort_msg("no initializer '%s'", name);
    return NULL;
}

static uint16_t narrow_at(const Onnx__TensorProto *t, size_t i)
{
    uint16_t v;
    memcpy(&v, t->raw_data.data + 2 * i, 2);
    return v;
}

START_TEST(a_weight_is_rounded_and_a_cast_widens_it)
{
    static const struct { LsDataType type; int number; uint16_t third, half, last; } want[] = {
        {LS_DT_F16, HALF, 0x3555, 0x6802, 0x4600}, {LS_DT_BF16, BRAIN, 0x3eab, 0x4500, 0x40c0}};
    make_model();
    open_program();
    weights()[0] = 1 / 3.f;
    weights()[1] = 2051;        /* between 2050 and 2052: to the even one */
    for (int k = 0; k < 2; k++) {
        const Onnx__GraphProto *g = exported(want[k].type);
        const Onnx__TensorProto *w = initializer(g, "w");
        ck_assert_int_eq(w->data_type, want[k].number);
        ck_assert(w->n_dims == 2 && w->dims[0] == 3 && w->dims[1] == 4 && w->raw_data.len == 24);
        ck_assert_uint_eq(narrow_at(w, 0), want[k].third);
        ck_assert_uint_eq(narrow_at(w, 1), want[k].half);
        ck_assert_uint_eq(narrow_at(w, 11), want[k].last);
        ck_assert_uint_eq(g->n_node, 3);        /* Cast, MatMul, Sub */
        ck_assert_str_eq(g->node[0]->op_type, "Cast");
        ck_assert_str_eq(g->node[0]->input[0], "w");
        ck_assert_str_eq(g->node[0]->output[0], "w.f32");
        ck_assert_str_eq(g->node[0]->attribute[0]->name, "to");
        ck_assert_int_eq(g->node[0]->attribute[0]->type,
                         ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
        ck_assert_int_eq(g->node[0]->attribute[0]->i, FLOAT);
        ck_assert_str_eq(g->node[1]->input[1], "w.f32");
        ck_assert_str_eq(g->node[2]->input[1], "mean");
    }
}
END_TEST

START_TEST(statistics_leave_as_floats_with_their_last_values)
{
    float last = 7.25f, there;
    make_model();
    open_program();
    memcpy((float *)ls_memory_at(&m, state[1].t.at) + 3, &last, sizeof last);
    const Onnx__TensorProto *mean = initializer(exported(LS_DT_F16), "mean");
    ck_assert_int_eq(mean->data_type, FLOAT);
    memcpy(&there, mean->raw_data.data + 12, sizeof there);
    ck_assert_float_eq(there, last);
}
END_TEST

START_TEST(a_weight_beyond_float16_stays_float)
{
    float there;
    make_model();
    open_program();
    weights()[5] = -65519.9f;   /* rounds to the largest float16 */
    ck_assert_int_eq(initializer(exported(LS_DT_F16), "w")->data_type, HALF);
    weights()[5] = -65520;      /* would be infinite */
    const Onnx__GraphProto *g = exported(LS_DT_F16);
    ck_assert_uint_eq(g->n_node, 2);
    memcpy(&there, initializer(g, "w")->raw_data.data + 20, sizeof there);
    ck_assert_float_eq(there, -65520);
    ck_assert_int_eq(initializer(exported(LS_DT_BF16), "w")->data_type, BRAIN);
    weights()[5] = INFINITY;    /* float16 has that */
    ck_assert_uint_eq(narrow_at(initializer(exported(LS_DT_F16), "w"), 5), 0x7c00);
}
END_TEST

START_TEST(new_names_are_free_and_weights_are_no_inputs)
{
    make_model();
    mk.out[1][0] = "w.f32";
    mk.g.n_input = 2;
    open_program();
    const Onnx__GraphProto *g = exported(LS_DT_F16);
    ck_assert_str_eq(g->node[0]->output[0], "w.f32_");
    ck_assert_str_eq(g->node[1]->input[1], "w.f32_");
    ck_assert_uint_eq(g->n_input, 1);
    ck_assert_str_eq(g->input[0]->name, "x");
    g = exported(LS_DT_REAL);
    ck_assert_uint_eq(g->n_input, 2);
}
END_TEST

/* The second node is an If: its body, and a body in that, read the weight and give it on. */
START_TEST(bodies_read_the_widened_weight)
{
    Onnx__GraphProto body[2], *inner;
    Onnx__NodeProto node[2], *nodes[2] = {&node[0], &node[1]};
    Onnx__AttributeProto attribute[2], *attributes[2] = {&attribute[0], &attribute[1]};
    Onnx__ValueInfoProto output, *outputs[1] = {&output};
    char *in[2] = {"w", "mean"}, *out[1] = {"v"};
    make_model();
    onnx__value_info_proto__init(&output);
    output.name = "w";
    for (int k = 0; k < 2; k++) {
        onnx__graph_proto__init(&body[k]);
        onnx__node_proto__init(&node[k]);
        onnx__attribute_proto__init(&attribute[k]);
        body[k].node = &nodes[k], body[k].n_node = 1;
        node[k].op_type = "Sub", node[k].input = in, node[k].n_input = 2, node[k].output = out,
        node[k].n_output = 1;
        attribute[k].name = "then_branch", attribute[k].g = &body[k];
    }
    body[1].output = outputs, body[1].n_output = 1;
    node[0].attribute = &attributes[1], node[0].n_attribute = 1;
    mk.node[1].attribute = &attributes[0], mk.node[1].n_attribute = 1;
    open_program();
    const Onnx__NodeProto *outer = exported(LS_DT_F16)->node[2];
    ck_assert_str_eq(outer->attribute[0]->name, "then_branch");
    ck_assert_str_eq(outer->attribute[0]->g->node[0]->input[0], "w.f32");
    ck_assert_str_eq(outer->attribute[0]->g->node[0]->input[1], "mean");
    inner = outer->attribute[0]->g->node[0]->attribute[0]->g;
    ck_assert_str_eq(inner->node[0]->input[0], "w.f32");
    ck_assert_str_eq(inner->output[0]->name, "w.f32");
}
END_TEST

START_TEST(a_weight_that_is_an_output_stays_float)
{
    Onnx__ValueInfoProto output, *outputs[1] = {&output};
    make_model();
    onnx__value_info_proto__init(&output);
    output.name = "w";
    mk.g.output = outputs, mk.g.n_output = 1;
    open_program();
    const Onnx__GraphProto *g = exported(LS_DT_F16);
    ck_assert_uint_eq(g->n_node, 2);
    ck_assert_int_eq(initializer(g, "w")->data_type, FLOAT);
}
END_TEST

START_TEST(what_casts_cannot_do_is_refused)
{
    make_model();
    open_program();
    ck_assert(ls_export_narrow_can(&p, LS_DT_BF16, &e));
    ls_memory_close(&m);
    mk.opset.version = 12;
    open_program();
    ck_assert(ls_export_narrow_can(&p, LS_DT_F16, &e) && ls_export_narrow_can(&p, LS_DT_REAL, &e));
    ck_assert(!ls_export_narrow_can(&p, LS_DT_BF16, &e));
    ck_assert_int_eq(e.code, LS_EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "opset 12, and Cast takes bfloat16 from opset 13 on"));
}
END_TEST

START_TEST(a_model_of_more_than_2_gib_becomes_two_files)
{
    make_model();
    open_program();
    ck_assert(!ls_export_is_large(&p, LS_DT_REAL));
    state[0].t.dim[0] = INT64_C(1) << 28;       /* 2^30 elements: 4 GiB, 2 GiB in 16 bits */
    p.file.bytes = (size_t)INT32_MAX + 1;
    ck_assert(ls_export_is_large(&p, LS_DT_REAL));
    ck_assert(!ls_export_is_large(&p, LS_DT_F16));
    p.file.bytes = (size_t)INT32_MAX + ((size_t)2 << 30) - (3 << 20);
    ck_assert(!ls_export_is_large(&p, LS_DT_BF16));
    p.file.bytes++;
    ck_assert(ls_export_is_large(&p, LS_DT_BF16));
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_weight_is_rounded_and_a_cast_widens_it, statistics_leave_as_floats_with_their_last_values,
        a_weight_beyond_float16_stays_float,      new_names_are_free_and_weights_are_no_inputs,
        bodies_read_the_widened_weight,           a_weight_that_is_an_output_stays_float,
        what_casts_cannot_do_is_refused,          a_model_of_more_than_2_gib_becomes_two_files,
    };
    return run_in_folder("export_narrow", sizeof test / sizeof *test, test);
}
