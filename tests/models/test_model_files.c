/* tests/models/test_model_files.c -- the files of generated networks: the same bytes for the same
 * options, initial values as PyTorch draws them, external weights, and a check of the format by
 * another library. */
#include <math.h>

#include "tests/support/model_util.h"

START_TEST(the_same_options_give_the_same_bytes_and_another_seed_others)
{
    char line[256];
    size_t na, nb, nc;
    snprintf(line, sizeof line, "%s --seed=2", small[_i]);
    ck_assert_int_eq(run(small[_i], in_dir("a.onnx")), 0);
    ck_assert_int_eq(run(small[_i], in_dir("b.onnx")), 0);
    ck_assert_int_eq(run(line, in_dir("c.onnx")), 0);
    uint8_t *a = slurp(in_dir("a.onnx"), &na), *b = slurp(in_dir("b.onnx"), &nb);
    uint8_t *c = slurp(in_dir("c.onnx"), &nc);
    ck_assert(na == nb && memcmp(a, b, na) == 0);
    ck_assert(na != nc || memcmp(a, c, na) != 0);
    free(a);
    free(b);
    free(c);
}
END_TEST

typedef struct Moments { double mean, deviation, least, most; } Moments;

static Moments moments(const Onnx__TensorProto *t)
{
    Moments r = {0, 0, INFINITY, -INFINITY};
    int64_t n = elements(t);
    double sum = 0, square = 0;
    ck_assert_uint_eq(t->raw_data.len, (size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        float v;
        memcpy(&v, t->raw_data.data + i * (int64_t)sizeof v, sizeof v);
        sum += (double)v;
        square += (double)v * (double)v;
        r.least = fmin(r.least, (double)v);
        r.most = fmax(r.most, (double)v);
    }
    r.mean = sum / (double)n;
    r.deviation = sqrt(square / (double)n - r.mean * r.mean);
    return r;
}

static void expect_uniform(const Onnx__ModelProto *m, const char *name, double bound)
{
    const Onnx__TensorProto *t = initializer(m, name);
    Moments s = moments(t);
    double n = sqrt((double)elements(t));
    ck_assert_double_le(s.most, bound * (1 + 1e-6));
    ck_assert_double_ge(s.least, -bound * (1 + 1e-6));
    ck_assert_double_ge(s.most, bound * (1 - 6 / n));
    ck_assert_double_le(fabs(s.mean), 4 * bound / n);
    ck_assert_double_le(fabs(s.deviation - bound / sqrt(3)), 3 * bound / n);
}

static void expect_normal(const Onnx__ModelProto *m, const char *name, double deviation)
{
    const Onnx__TensorProto *t = initializer(m, name);
    Moments s = moments(t);
    double n = sqrt((double)elements(t));
    ck_assert_double_le(fabs(s.mean), 4 * deviation / n);
    ck_assert_double_le(fabs(s.deviation - deviation), 4 * deviation / n);
    ck_assert_double_ge(s.most, 2.5 * deviation);
}

static void expect_all(const Onnx__ModelProto *m, const char *name, double v)
{
    Moments s = moments(initializer(m, name));
    ck_assert_double_eq(s.least, v);
    ck_assert_double_eq(s.most, v);
}

START_TEST(plain_layers_start_uniform_within_one_over_the_root_of_fan_in)
{
    Onnx__ModelProto *m = made("unet --width=16 --depth=2 --size=32");
    expect_uniform(m, "down1.maxpool_conv.1.double_conv.3.weight", 1 / sqrt(32 * 9));
    expect_uniform(m, "up1.up.weight", 1 / sqrt(32 * 4));   /* transposed: PyTorch takes dim 1 */
    expect_uniform(m, "up1.up.bias", 1 / sqrt(32 * 4));
    drop(m);
    m = made("mlp --width=300 --depth=2");
    expect_uniform(m, "fc1.weight", 1 / sqrt(784));
    expect_uniform(m, "fc1.bias", 1 / sqrt(784));
    expect_uniform(m, "fc2.weight", 1 / sqrt(300));
    drop(m);
}
END_TEST

START_TEST(families_start_as_torchvision_and_gpt2_do)
{
    Onnx__ModelProto *m = made("resnet18 --width=16");
    expect_normal(m, "layer2.0.conv1.weight", sqrt(2.0 / (32 * 9)));        /* fan out */
    expect_uniform(m, "fc.bias", 1 / sqrt(128));
    expect_all(m, "bn1.weight", 1);
    expect_all(m, "bn1.bias", 0);
    expect_all(m, "bn1.running_mean", 0);
    expect_all(m, "bn1.running_var", 1);
    drop(m);
    m = made("densenet121 --width=8");
    expect_normal(m, "features.denseblock1.denselayer2.conv1.weight", sqrt(2.0 / 24));  /* fan in */
    expect_all(m, "classifier.bias", 0);
    drop(m);
    m = made("vgg16 --width=4 --size=32");
    expect_normal(m, "classifier.3.weight", 0.01);
    expect_all(m, "features.0.bias", 0);
    drop(m);
    m = made("gpt --depth=2 --width=64 --heads=4 --context=16 --vocab=65");
    expect_normal(m, "transformer.wte.weight", 0.02);
    expect_normal(m, "transformer.h.1.attn.c_proj.weight", 0.01);       /* over sqrt(2 * depth) */
    expect_all(m, "transformer.h.0.mlp.c_fc.bias", 0);
    expect_all(m, "transformer.h.0.ln_1.weight", 1);
    drop(m);
}
END_TEST

START_TEST(weights_of_a_layer_do_not_depend_on_other_layers)
{
    Onnx__ModelProto *m = made("resnet18 --width=4 --size=64");
    Onnx__TensorProto *t = initializer(m, "layer1.0.conv2.weight");
    uint8_t *kept = malloc(t->raw_data.len);
    size_t n = t->raw_data.len;
    memcpy(kept, t->raw_data.data, n);
    drop(m);
    m = made("resnet34 --width=4 --size=96 --classes=7");
    t = initializer(m, "layer1.0.conv2.weight");
    ck_assert_uint_eq(t->raw_data.len, n);
    ck_assert_mem_eq(t->raw_data.data, kept, n);
    free(kept);
    drop(m);
}
END_TEST

START_TEST(the_mask_hides_the_future_and_nothing_else)
{
    Onnx__ModelProto *m = made("gpt --depth=1 --width=8 --heads=2 --context=5 --vocab=7");
    const Onnx__TensorProto *t = initializer(m, "transformer.mask");
    ck_assert_int_eq(t->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL);
    ck_assert_uint_eq(t->raw_data.len, 25);
    for (int row = 0; row < 5; row++)
        for (int column = 0; column < 5; column++)
            ck_assert_int_eq(t->raw_data.data[5 * row + column], column > row);
    drop(m);
}
END_TEST

/* The external_data entry of that key. */
static const char *entry(const Onnx__TensorProto *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++)
        if (strcmp(t->external_data[i]->key, key) == 0)
            return t->external_data[i]->value;
    return "";
}

START_TEST(external_weights_hold_the_same_values)
{
    size_t n;
    const char *line = "resnet18 --width=4 --size=64 --weights=external";
    ck_assert_int_eq(run(line, in_dir("beside.onnx")), 0);
    Onnx__ModelProto *m = load(in_dir("beside.onnx"));
    Onnx__ModelProto *whole = made("resnet18 --width=4 --size=64");
    uint8_t *data = slurp(in_dir("beside.weights"), &n);
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = m->graph->initializer[i], *w = whole->graph->initializer[i];
        size_t at = strtoul(entry(t, "offset"), NULL, 10);
        size_t len = strtoul(entry(t, "length"), NULL, 10);
        ck_assert_str_eq(entry(t, "location"), "beside.weights");
        ck_assert(!t->has_raw_data && at + len <= n && len == w->raw_data.len);
        ck_assert_mem_eq(data + at, w->raw_data.data, len);
    }
    free(data);
    drop(m);
    drop(whole);
}
END_TEST

START_TEST(a_network_without_weights_names_a_file_and_writes_none)
{
    ck_assert_int_eq(run("gpt --weights=none", in_dir("plan.onnx")), 0);
    Onnx__ModelProto *m = load(in_dir("plan.onnx"));
    ck_assert_int_ne(access(in_dir("plan.weights"), F_OK), 0);
    const Onnx__TensorProto *t = initializer(m, "transformer.h.11.mlp.c_fc.weight");
    ck_assert_int_eq(t->data_location, ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL);
    ck_assert_str_eq(entry(t, "length"), "9437184");    /* 768 x 3072 floats */
    ck_assert_uint_eq(initializer(m, "transformer.mask")->raw_data.len, 1024 * 1024);
    drop(m);
}
END_TEST

/* Another check, where Python's onnx is installed: its checker, and its inferred output shapes
 * against the written shapes. */
START_TEST(onnx_accepts_every_model)
{
    static const char script[] =
        "import onnx, sys\n"
        "dims = lambda v: [d.dim_value for d in v.type.tensor_type.shape.dim]\n"
        "for f in sys.argv[1:]:\n"
        "    onnx.checker.check_model(f)\n"
        "    m = onnx.load(f)\n"
        "    want = {o.name: dims(o) for o in m.graph.output}\n"
        "    for o in m.graph.output:\n"
        "        o.type.tensor_type.ClearField('shape')\n"
        "    m = onnx.shape_inference.infer_shapes(m, check_type=True, strict_mode=True)\n"
        "    for o in m.graph.output:\n"
        "        assert dims(o) == want[o.name], (f, o.name, dims(o), want[o.name])\n";
    char command[4096], line[256];
    if (system("/usr/bin/python3 -c 'import onnx.checker, onnx.shape_inference' >/dev/null 2>&1")
        != 0) {
        printf("skipped: no onnx for /usr/bin/python3\n");
        return;
    }
    FILE *f = fopen(in_dir("check.py"), "w");
    fputs(script, f);
    fclose(f);
    int n = snprintf(command, sizeof command, "/usr/bin/python3 %s", in_dir("check.py"));
    for (int i = 0; i < NSMALL; i++) {
        char name[32];
        snprintf(name, sizeof name, "small%d.onnx", i);
        snprintf(line, sizeof line, "%s%s", small[i],
                 strstr(small[i], "--batch") == NULL ? " --batch=2" : "");
        ck_assert_int_eq(run(line, in_dir(name)), 0);
        n += snprintf(command + n, sizeof command - (size_t)n, " %s", in_dir(name));
    }
    ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("model_files");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, the_same_options_give_the_same_bytes_and_another_seed_others, 0,
                        NSMALL);
    tcase_add_test(tc, plain_layers_start_uniform_within_one_over_the_root_of_fan_in);
    tcase_add_test(tc, families_start_as_torchvision_and_gpt2_do);
    tcase_add_test(tc, weights_of_a_layer_do_not_depend_on_other_layers);
    tcase_add_test(tc, the_mask_hides_the_future_and_nothing_else);
    tcase_add_test(tc, external_weights_hold_the_same_values);
    tcase_add_test(tc, a_network_without_weights_names_a_file_and_writes_none);
    tcase_add_test(tc, onnx_accepts_every_model);
    return run_models("model_files", tc);
}
