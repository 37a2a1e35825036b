/* tests/models/test_zoo_models.c -- the generated networks: sizes and names as published, graphs in
 * training form, and refusals. */
#include <cJSON.h>

#include "tests/support/model_util.h"

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

/* Published numbers of parameters: torchvision's model pages, GPT-2 124M; the others are
 * computed. */
static const struct { const char *line; int64_t parameters;
} published[] = {
    {"autoencoder", 2405633},
    {"cnn", 16798858},
    {"densenet121", 7978856},
    {"densenet161", 28681000},
    {"densenet169", 14149480},
    {"densenet201", 20013928},
    {"digits", 1199882},
    {"googlenet", 6624904},
    {"gpt", 124439808},
    {"gpt --head=untied", 124439808 + 50257 * 768},
    {"mlp", 1628170},
    {"pspnet50", 23508032 + 4198400 + 18875392 + 9747},
    {"pspnet101", 42500160 + 4198400 + 18875392 + 9747},
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
    {"unet", 31037698},
    {"unet --up=bilinear --classes=1", 17262977},
    {"vgg16", 138357544},
    {"vgg16_bn", 138365992},
    {"vgg19", 143667240},
    {"vgg19_bn", 143678248},
    {"vit", 86567656},
};

START_TEST(parameter_counts_are_the_published_ones)
{
    char line[256];
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        snprintf(line, sizeof line, "%s --weights=none", published[i].line);
        Onnx__ModelProto *m = made(line);
        ck_assert_msg(trainable(m) == published[i].parameters,
                      "%s: %lld parameters, published %lld", line, (long long)trainable(m),
                      (long long)published[i].parameters);
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
    {"unet --up=cubic", "must be one of deconv|bilinear"},
    {"unet --up=", "must be one of deconv|bilinear"},
    {"unet --dropout=1", "a rate of at least 0 and below 1"},
    {"unet --dropout=nan", "a rate of at least 0 and below 1"},
    {"unet --dropout=0.99999999", "a rate of at least 0 and below 1"},
    {"cnn --depth=400", "does not fit"},
    {"gpt --heads=7", "not a multiple of --heads=7"},
    {"vit --heads=7", "not a multiple of --heads=7"},
    {"vit --patch=225", "does not fit"},
    {"pspnet50 --size=224", "the next sizes that fit are 233 to 240"},
    {"mlp --width=65536 --depth=300", "are more than 64 GiB"},
    {"vgg16 --width=65536", "more than 2^40"},
    {"unet stray", "unexpected argument 'stray'"},
    {"unet --width", "needs a value"},
    {"vgg16 --size=16", "does not fit"},
};

START_TEST(options_that_cannot_be_are_refused_with_a_reason_and_leave_no_file)
{
    /* "--width" alone must come last, so the output is named first */
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

int main(void)
{
    TCase *tc = tcase_create("models");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, parameter_counts_are_the_published_ones);
    tcase_add_test(tc, every_model_of_the_list_has_a_published_count);
    tcase_add_test(tc, names_and_shapes_of_weights_are_those_of_exported_networks);
    tcase_add_test(tc, counts_agree_with_the_planning_manifest);
    tcase_add_loop_test(tc, values_are_defined_once_and_before_they_are_used, 0, NSMALL);
    tcase_add_loop_test(tc, batch_norm_and_dropout_are_in_training_form, 0, NSMALL);
    tcase_add_loop_test(tc, options_that_cannot_be_are_refused_with_a_reason_and_leave_no_file, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tc, a_missing_output_name_is_a_usage_error);
    tcase_add_test(tc, a_file_that_cannot_be_written_is_reported);
    tcase_add_test(tc, the_list_names_every_model);
    return run_models("models", tc);
}
