/* tests/test_models.c -- the generated networks: sizes as published, files that readers accept, initial
 * values as PyTorch draws them, and refusals. */
#include <cJSON.h>
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/zoo.h"
#include "onnx.pb-c.h"

static char dir[] = "/tmp/lowerset-models-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* `lowerset model LINE -o FILE`, LINE split at blanks. Standard error is kept quiet. */
static int run(const char *line, const char *file)
{
    char words[512], *argv[32] = {"model"};
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w != NULL && argc < 28; w = strtok(NULL, " "))
        argv[argc++] = w;
    if (file != NULL) {
        argv[argc++] = "-o";
        argv[argc++] = (char *)(uintptr_t)file;
    }
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen(in_dir("stderr"), "w", stderr));
    int code = ls_model_main(argc, argv);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    return code;
}

static uint8_t *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    ck_assert_msg(f != NULL && fstat(fileno(f), &st) == 0, "%s is not there", path);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    *n = fread(bytes, 1, (size_t)st.st_size, f);
    bytes[*n] = 0;
    fclose(f);
    return bytes;
}

static const char *complaint(void)
{
    static char text[1024];
    size_t n;
    uint8_t *bytes = slurp(in_dir("stderr"), &n);
    snprintf(text, sizeof text, "%s", (char *)bytes);
    free(bytes);
    return text;
}

static Onnx__ModelProto *load(const char *path)
{
    size_t n;
    uint8_t *bytes = slurp(path, &n);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, n, bytes);
    free(bytes);
    ck_assert_msg(m != NULL, "%s does not parse", path);
    return m;
}

static Onnx__ModelProto *made(const char *line)
{
    const char *path = in_dir("made.onnx");
    ck_assert_msg(run(line, path) == 0, "%s: %s", line, complaint());
    return load(path);
}

static void drop(Onnx__ModelProto *m) { onnx__model_proto__free_unpacked(m, NULL); }

static int64_t elements(const Onnx__TensorProto *t)
{
    int64_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        n *= t->dims[i];
    return n;
}

static Onnx__TensorProto *initializer(const Onnx__ModelProto *m, const char *name)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (strcmp(m->graph->initializer[i]->name, name) == 0)
            return m->graph->initializer[i];
    return NULL;
}

static int count_ops(const Onnx__ModelProto *m, const char *op)
{
    int n = 0;
    for (size_t i = 0; i < m->graph->n_node; i++)
        n += strcmp(m->graph->node[i]->op_type, op) == 0;
    return n;
}

static int64_t trainable(const Onnx__ModelProto *m)
{
    int64_t n = 0;
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = m->graph->initializer[i];
        if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
            && strstr(t->name, ".running_") == NULL)
            n += elements(t);
    }
    return n;
}

/* Parameters as published: torchvision's model pages; GPT-2 124M; the rest is arithmetic. */
static const struct { const char *line; int64_t parameters; } published[] = {
    {"autoencoder", 2405633}, {"cnn", 16798858}, {"densenet121", 7978856},
    {"densenet161", 28681000}, {"densenet169", 14149480}, {"densenet201", 20013928},
    {"googlenet", 6624904}, {"gpt", 124439808}, {"gpt --head=untied", 124439808 + 50257 * 768},
    {"mlp", 1628170}, {"pspnet50", 23508032 + 4198400 + 18875392 + 9747},
    {"resnet18", 11689512}, {"resnet34", 21797672}, {"resnet50", 25557032},
    {"resnet101", 44549160}, {"resnet152", 60192808}, {"unet", 31037698},
    {"unet --up=bilinear --classes=1", 17262977}, {"vgg16", 138357544},
    {"vgg16_bn", 138365992}, {"vgg19", 143667240}, {"vgg19_bn", 143678248},
};

START_TEST(parameter_counts_are_the_published_ones)
{
    char line[256];
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        snprintf(line, sizeof line, "%s --weights=none", published[i].line);
        Onnx__ModelProto *m = made(line);
        ck_assert_msg(trainable(m) == published[i].parameters, "%s: %lld parameters, published %lld",
                      line, (long long)trainable(m), (long long)published[i].parameters);
        drop(m);
    }
}
END_TEST

START_TEST(every_model_of_the_list_has_a_published_count)
{
    for (size_t i = 0; ls_model_at(i) != NULL; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof published / sizeof *published; k++)
            found |= strcmp(published[k].line, ls_model_at(i)->name) == 0;
        ck_assert_msg(found, "%s is not in the table", ls_model_at(i)->name);
    }
}
END_TEST

/* PyTorch's own exports of the same networks. */
START_TEST(names_and_shapes_of_weights_are_those_of_exported_networks)
{
    static const char *const names[] = {"resnet18", "resnet50", "densenet121", "vgg16_bn"};
    static const char *const ops[] = {"Conv", "BatchNormalization", "Relu", "MaxPool", "Gemm",
                                      "Add"};
    char path[512], line[64];
    if (access(LS_SHARED "/inputs/planning/MANIFEST.json", R_OK) != 0) {
        printf("skipped: no %s\n", LS_SHARED "/inputs/planning");
        return;
    }
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/inputs/planning/%s.onnx", LS_SHARED, names[i]);
        snprintf(line, sizeof line, "%s --weights=none", names[i]);
        Onnx__ModelProto *ref = load(path), *m = made(line);
        ck_assert_uint_eq(m->graph->n_initializer, ref->graph->n_initializer);
        for (size_t k = 0; k < ref->graph->n_initializer; k++) {
            const Onnx__TensorProto *r = ref->graph->initializer[k], *t = initializer(m, r->name);
            ck_assert_msg(t != NULL, "%s: no %s", line, r->name);
            ck_assert_uint_eq(t->n_dims, r->n_dims);
            ck_assert_mem_eq(t->dims, r->dims, r->n_dims * sizeof *r->dims);
        }
        for (int k = 0; k < 6; k++)
            ck_assert_msg(count_ops(m, ops[k]) == count_ops(ref, ops[k]), "%s: %d %s, not %d", line,
                          count_ops(m, ops[k]), ops[k], count_ops(ref, ops[k]));
        drop(ref);
        drop(m);
    }
}
END_TEST

START_TEST(counts_agree_with_the_planning_manifest)
{
    size_t n;
    const char *path = LS_SHARED "/inputs/planning/MANIFEST.json";
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        return;
    }
    uint8_t *text = slurp(path, &n);
    cJSON *list = cJSON_Parse((char *)text), *e;
    int compared = 0;
    cJSON_ArrayForEach(e, list) {
        char name[64], err[256], *us;
        LsModelInfo info;
        const char *arch = cJSON_GetStringValue(cJSON_GetObjectItem(e, "file")) + 9;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(arch, "."), arch);
        if ((strncmp(name, "unet", 4) == 0 || strncmp(name, "gpt", 3) == 0)
            && (us = strchr(name, name[0] == 'u' ? '_' : '2')) != NULL)
            *us = '\0';
        const LsModel *m = ls_model_find(name);
        if (m == NULL)
            continue;       /* the other spellings of resnet50 */
        LsModelRequest r = ls_model_request(m);
        ck_assert_int_eq(ls_model_count(&r, &info, err, sizeof err), 0);
        ck_assert_int_eq(info.parameters,
                         (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(e, "params")));
        compared++;
    }
    ck_assert_int_eq(compared, 6);
    cJSON_Delete(list);
    free(text);
}
END_TEST

/* Small forms of everything, with weights. */
static const char *const small[] = {
    "autoencoder --batch=4 --dropout=0.1", "cnn --size=28",
    "densenet121 --width=4 --size=64 --dropout=0.2", "googlenet --size=64 --width=8",
    "gpt --depth=2 --width=32 --heads=4 --context=16 --vocab=65 --dropout=0.1",
    "gpt --depth=1 --width=32 --heads=2 --context=16 --vocab=65 --head=untied --batch=3",
    "mlp --width=64 --depth=3", "pspnet50 --size=48 --width=4 --classes=3",
    "resnet18 --stem=cifar --size=32 --width=4", "resnet50 --size=64 --width=4 --dropout=0.5",
    "unet --width=4 --depth=3 --size=37", "unet --width=4 --depth=2 --size=44 --pad=valid",
    "unet --width=4 --depth=3 --size=37 --up=bilinear --dropout=0.5",
    "vgg16 --width=4 --size=64", "vgg19_bn --width=4 --size=32 --dropout=0",
};
enum { NSMALL = sizeof small / sizeof *small };

static bool known(const Onnx__ModelProto *m, size_t nodes, const char *name)
{
    for (size_t i = 0; i < m->graph->n_input; i++)
        if (strcmp(m->graph->input[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < nodes; i++)
        for (size_t k = 0; k < m->graph->node[i]->n_output; k++)
            if (strcmp(m->graph->node[i]->output[k], name) == 0)
                return true;
    return initializer(m, name) != NULL;
}

START_TEST(values_are_defined_once_and_before_they_are_used)
{
    Onnx__ModelProto *m = made(small[_i]);
    for (size_t i = 0; i < m->graph->n_node; i++) {
        const Onnx__NodeProto *n = m->graph->node[i];
        for (size_t k = 0; k < n->n_input; k++)
            ck_assert_msg(n->input[k][0] == '\0' || known(m, i, n->input[k]),
                          "%s: '%s' reads '%s' too early", small[_i], n->name, n->input[k]);
        for (size_t k = 0; k < n->n_output; k++)
            ck_assert_msg(!known(m, i, n->output[k]), "%s: '%s' again", small[_i], n->output[k]);
    }
    for (size_t i = 0; i < m->graph->n_output; i++)
        ck_assert(known(m, m->graph->n_node, m->graph->output[i]->name));
    drop(m);
}
END_TEST

static const Onnx__AttributeProto *attribute(const Onnx__NodeProto *n, const char *name)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (strcmp(n->attribute[i]->name, name) == 0)
            return n->attribute[i];
    return NULL;
}

static const Onnx__NodeProto *producer(const Onnx__ModelProto *m, const char *value)
{
    for (size_t i = 0; i < m->graph->n_node; i++)
        if (strcmp(m->graph->node[i]->output[0], value) == 0)
            return m->graph->node[i];
    return NULL;
}

START_TEST(batch_norm_and_dropout_are_in_training_form)
{
    Onnx__ModelProto *m = made(small[_i]);
    for (size_t i = 0; i < m->graph->n_node; i++) {
        const Onnx__NodeProto *n = m->graph->node[i];
        if (strcmp(n->op_type, "BatchNormalization") == 0) {
            ck_assert_uint_eq(n->n_output, 3);
            ck_assert_int_eq(attribute(n, "training_mode")->i, 1);
        } else if (strcmp(n->op_type, "Dropout") == 0) {
            const Onnx__NodeProto *mode = producer(m, n->input[2]);
            const Onnx__TensorProto *t = attribute(mode, "value")->t;
            ck_assert_int_eq(t->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__BOOL);
            ck_assert_int_eq(t->raw_data.data[0], 1);
        }
    }
    bool asked = strstr(small[_i], "dropout=0.") != NULL || strncmp(small[_i], "vgg16 ", 6) == 0
        || strncmp(small[_i], "googlenet", 9) == 0 || strncmp(small[_i], "pspnet", 6) == 0;
    ck_assert_msg(asked == (count_ops(m, "Dropout") > 0), "%s", small[_i]);
    drop(m);
}
END_TEST

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
    Onnx__ModelProto *m = load(in_dir("beside.onnx")), *whole = made("resnet18 --width=4 --size=64");
    uint8_t *data = slurp(in_dir("beside.weights"), &n);
    for (size_t i = 0; i < m->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = m->graph->initializer[i], *w = whole->graph->initializer[i];
        size_t at = strtoul(entry(t, "offset"), NULL, 10), len = strtoul(entry(t, "length"), NULL, 10);
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

static const struct { const char *line, *says; } refused[] = {
    {"resnet19", "there is no model 'resnet19'"},
    {"resnet19", "did you mean resnet1"},
    {"resnet18 --depth=3", "resnet18 has no option --depth"},
    {"unet --widht=8", "did you mean --width?"},
    {"unet --width=0", "a whole number from 1 to"},
    {"unet --width=8x", "a whole number"},
    {"unet --width=99999999999999999999999", "a whole number"},
    {"unet --width=-4", "a whole number"},
    {"unet --depth=9", "at most 8 levels"},
    {"unet --size=8 --depth=4", "does not fit"},
    {"unet --size=20 --pad=valid --width=1", "does not fit"},
    {"unet --up=cubic", "one of deconv|bilinear is wanted"},
    {"unet --up=", "one of deconv|bilinear is wanted"},
    {"unet --dropout=1", "a rate from 0 to less than 1"},
    {"unet --dropout=nan", "a rate from 0 to less than 1"},
    {"unet --dropout=0.99999999", "a rate from 0 to less than 1"},
    {"cnn --depth=400", "does not fit"},
    {"gpt --heads=7", "not a multiple of --heads=7"},
    {"pspnet50 --size=224", "the next sizes that fit are 233 to 240"},
    {"mlp --width=65536 --depth=300", "are more than 64 GiB"},
    {"vgg16 --width=65536", "more than 2^40"},
    {"unet stray", "unexpected argument 'stray'"},
    {"unet --width", "wants a value"},
    {"vgg16 --size=16", "does not fit"},
};

START_TEST(options_that_cannot_be_are_refused_with_a_reason_and_leave_no_file)
{
    /* "--width" alone must come last, so the output is named first there */
    bool last = strcmp(refused[_i].line, "unet --width") == 0;
    const char *line = last ? "unet -o /dev/null --width" : refused[_i].line;
    int code = run(line, last ? NULL : in_dir("refused.onnx"));
    ck_assert_msg(code == 2, "%s: %d", line, code);
    ck_assert_msg(strstr(complaint(), refused[_i].says) != NULL, "%s: %s", line, complaint());
    ck_assert_int_ne(access(in_dir("refused.onnx"), F_OK), 0);
}
END_TEST

START_TEST(a_missing_output_name_is_a_usage_error)
{
    ck_assert_int_eq(run("mlp", NULL), 2);
    ck_assert_ptr_nonnull(strstr(complaint(), "-o FILE.onnx is missing"));
    ck_assert_int_eq(run("", NULL), 2);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_reported)
{
    ck_assert_int_eq(run("mlp --width=8", "/nonexistent/dir/x.onnx"), 1);
    ck_assert_ptr_nonnull(strstr(complaint(), "cannot write /nonexistent/dir/x.onnx"));
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(run("mlp --width=8", "/dev/full"), 1);
        ck_assert_int_eq(access("/dev/full", F_OK), 0);
    }
}
END_TEST

START_TEST(the_list_names_every_model)
{
    size_t n;
    FILE *f = fopen(in_dir("list"), "w");
    ls_model_list(f);
    for (size_t i = 0; ls_model_at(i) != NULL; i++)
        ls_model_help(f, ls_model_at(i));
    fclose(f);
    char *text = (char *)slurp(in_dir("list"), &n);
    for (size_t i = 0; ls_model_at(i) != NULL; i++)
        ck_assert_ptr_nonnull(strstr(text, ls_model_at(i)->name));
    ck_assert_ptr_nonnull(strstr(text, "--up=deconv|bilinear"));
    free(text);
}
END_TEST

/* A second opinion, where Python's onnx is installed: its checker, and its own inference of the
 * outputs' shapes against those we wrote. */
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
    if (system("/usr/bin/python3 -c 'import onnx' >/dev/null 2>&1") != 0) {
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
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    Suite *s = suite_create("models");
    TCase *tc = tcase_create("models");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, parameter_counts_are_the_published_ones);
    tcase_add_test(tc, every_model_of_the_list_has_a_published_count);
    tcase_add_test(tc, names_and_shapes_of_weights_are_those_of_exported_networks);
    tcase_add_test(tc, counts_agree_with_the_planning_manifest);
    tcase_add_loop_test(tc, values_are_defined_once_and_before_they_are_used, 0, NSMALL);
    tcase_add_loop_test(tc, batch_norm_and_dropout_are_in_training_form, 0, NSMALL);
    tcase_add_loop_test(tc, the_same_options_give_the_same_bytes_and_another_seed_others, 0,
                        NSMALL);
    tcase_add_test(tc, plain_layers_start_uniform_within_one_over_the_root_of_fan_in);
    tcase_add_test(tc, families_start_as_torchvision_and_gpt2_do);
    tcase_add_test(tc, weights_of_a_layer_do_not_depend_on_other_layers);
    tcase_add_test(tc, the_mask_hides_the_future_and_nothing_else);
    tcase_add_test(tc, external_weights_hold_the_same_values);
    tcase_add_test(tc, a_network_without_weights_names_a_file_and_writes_none);
    tcase_add_loop_test(tc, options_that_cannot_be_are_refused_with_a_reason_and_leave_no_file, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tc, a_missing_output_name_is_a_usage_error);
    tcase_add_test(tc, a_file_that_cannot_be_written_is_reported);
    tcase_add_test(tc, the_list_names_every_model);
    tcase_add_test(tc, onnx_accepts_every_model);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0 || failed != 0;
}
