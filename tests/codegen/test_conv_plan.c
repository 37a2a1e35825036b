/* tests/codegen/test_conv_plan.c -- convolutions planned without a GPU. Without cuDNN, tests that
 * need it are skipped with a line. */
#include "codegen/cuda/conv_fuse.h"
#include "codegen/cuda/conv_plan.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/plan_cache.h"
#include "codegen/emit/target.h"
#include "compiler/fold/append.h"
#include "tests/support/compiled_model.h"

#include <dirent.h>
#include <time.h>

static LsConvPlanner *planner(LsCtx *cx, const char *device, bool tf32, int64_t workspace)
{
    const LsConvWishes w = {.device = device, .rules = {.tf32 = tf32}, .workspace = workspace};
    return ls_conv_planner_new(cx->arena, &w);
}

/* Whether cuDNN is installed; else prints that the test is skipped. */
static bool have_cudnn(void)
{
    LsDnn lib;
    char err[1300];
    bool here = ls_dnn_open(&lib, err, sizeof err);
    if (!here)
        printf("skipped: %s\n", err);
    ls_dnn_close(&lib);
    return here;
}

static bool is_conv(const LsGraph *g, uint32_t n)
{
    int op = g->node[n].op;
    return op == LS_OP_CONV || op == LS_OP_CONV_DX || op == LS_OP_CONV_DW;
}

typedef struct Tally { int nodes, own, apart, cores; int64_t largest, all; } Tally;

/* Every convolution of g has a finalised plan with its stated workspace. */
static Tally plan_all(LsConvPlanner *p, const LsGraph *g)
{
    Tally t = {0};
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (!is_conv(g, i))
            continue;
        const LsConvChoice *c = ls_conv_choose(p, g, (LsNodeId){i}, 4);
        ck_assert_msg(!c->own, "node %u '%s': %s", i, g->node[i].name, c->why);
        ck_assert_ptr_nonnull(c->json);
        ck_assert_ptr_nonnull(strstr(c->json, "\"cudnnVersion\""));
        ck_assert_int_ge(c->workspace, 0);
        t.nodes++;
        t.apart += c->bias_apart;
        t.cores += c->tensor_core;
        t.all += c->workspace;
        t.largest = c->workspace > t.largest ? c->workspace : t.largest;
    }
    return t;
}

static const struct { const char *line; int64_t batch; } zoo[] = {
    {"resnet50", 2}, {"resnet50", 256}, {"resnet18", 8}, {"densenet121", 2}, {"densenet121", 128},
    {"unet", 2}, {"unet --pad=valid", 1}, {"unet --up=bilinear", 2}, {"googlenet", 2},
    {"pspnet50", 2}, {"vgg16", 2}, {"vgg19_bn", 2}, {"autoencoder", 16}, {"cnn", 32},
};

START_TEST(every_convolution_of_the_zoo_has_an_exact_plan)
{
    if (!have_cudnn())
        return;
    for (size_t k = 0; k < sizeof zoo / sizeof *zoo; k++) {
        LsCtx cx = {.arena = ls_arena_new()};
        LsGraph *g = compiled(&cx, zoo[k].line, zoo[k].batch);
        for (int tf32 = 0; tf32 < 2; tf32++) {
            LsConvPlanner *p = planner(&cx, "h200", tf32, 0);
            clock_t start = clock();
            Tally t = plan_all(p, g);
            ck_assert_msg(ls_conv_planner_estimates(p) == NULL, "%s", ls_conv_planner_estimates(p));
            if (!tf32)
                ck_assert_int_eq(t.cores, 0);
            printf("%s batch %lld %s: %d convolutions, %d on tensor cores, %d with a bias apart, "
                   "workspace at most %.1f MiB, %.1f ms of processor time\n",
                   zoo[k].line, (long long)zoo[k].batch, tf32 ? "tf32" : "f32", t.nodes, t.cores,
                   t.apart, (double)t.largest / 1048576,
                   1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
            ls_conv_planner_free(p);
        }
        ls_arena_free(cx.arena);
    }
}
END_TEST

START_TEST(every_device_that_ships_can_be_planned_for)
{
    static const char *const device[] = {"h200", "h100", "a100", "l4", "rtx4090"};
    if (!have_cudnn())
        return;
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 8);
    for (size_t k = 0; k < sizeof device / sizeof *device; k++) {
        LsConvPlanner *p = planner(&cx, device[k], true, 0);
        Tally t = plan_all(p, g);
        ck_assert_int_eq(t.own, 0);
        ck_assert_int_gt(t.cores, t.nodes / 2);
        ls_conv_planner_free(p);
    }
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(a_workspace_limit_is_kept)
{
    enum { MOST = 1 << 20 };
    if (!have_cudnn())
        return;
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 64);
    LsConvPlanner *p = planner(&cx, "h200", false, 0);
    ck_assert_int_gt(plan_all(p, g).largest, MOST);
    ls_conv_planner_free(p);
    p = planner(&cx, "h200", false, MOST);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (is_conv(g, i))
            ck_assert_int_le(ls_conv_choose(p, g, (LsNodeId){i}, 4)->workspace, MOST);
    ls_conv_planner_free(p);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(weight_gradients_have_room_for_what_no_description_tells)
{
    if (!have_cudnn())
        return;
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 64);
    LsConvPlanner *p = planner(&cx, "h200", true, 0);
    int seen = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        if (g->node[i].op != LS_OP_CONV_DW)
            continue;
        const LsConvChoice *c = ls_conv_choose(p, g, (LsNodeId){i}, 4);
        int64_t share = ls_dnn_conv_bytes(&c->conv) / 8, most = 132 * (INT64_C(256) << 10);
        ck_assert_int_ge(c->workspace, (share < most ? share : most) / 256 * 256);
        seen++;
    }
    ck_assert_int_gt(seen, 15);
    ls_conv_planner_free(p);
    ls_arena_free(cx.arena);
}
END_TEST

/* The number of nodes with these operators. */
static int count_nodes(const LsGraph *g, LsOpCode op)
{
    int n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

START_TEST(relus_behind_convolutions_with_a_bias_are_taken_in)
{
    static const struct { const char *line; uint32_t relus; } row[] = {
        {"vgg16", 13}, {"vgg16_bn", 0}, {"resnet18", 0}};
    if (!have_cudnn())
        return;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsCtx cx = {.arena = ls_arena_new()};
        LsGraph *g = compiled(&cx, row[k].line, 4);
        int fused = count_nodes(g, LS_OP_FUSED), convs = count_nodes(g, LS_OP_CONV);
        LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .device = "h200",
                      .convs = planner(&cx, "h200", false, 0)};
        ck_assert_uint_eq(ls_conv_fuse(g, &t), row[k].relus);
        ck_assert_int_eq(count_nodes(g, LS_OP_FUSED), fused - (int)row[k].relus);
        ck_assert_int_eq(count_nodes(g, LS_OP_CONV), convs);
        for (uint32_t i = 1; i < g->nnode; i++)     /* operands still come from earlier nodes */
            for (int in = 0; in < g->node[i].nin; in++) {
                uint32_t def = g->value[ls_in(g, (LsNodeId){i}, in).i].def.i;
                ck_assert(def < i && (def == 0 || g->node[def].op != LS_OP_NOP));
            }
        plan_all(t.convs, g);
        ls_conv_planner_free(t.convs);
        ls_arena_free(cx.arena);
    }
}
END_TEST

/* Batch norms' sums behind a convolution: so far only engines that compile a kernel take them, and
 * planning with those needs the driver. A failure here means that a faster engine is available. */
START_TEST(no_engine_sums_statistics_without_compiling)
{
    static const LsDnnConv c = {
        .kind = LS_DNN_CONV_FORWARD, .axes = 2, .real_bytes = 4, .statistics = true,
        .x = {64, 64, 56, 56}, .w = {64, 64, 3, 3}, .y = {64, 64, 56, 56}, .stride = {1, 1},
        .dilation = {1, 1}, .pad_lo = {1, 1}, .pad_hi = {1, 1}};
    LsDnn lib;
    char err[1300], *json;
    size_t size;
    if (!have_cudnn())
        return;
    ck_assert(ls_dnn_open(&lib, err, sizeof err));
    json = (char *)slurp(LS_SOURCE "/compiler/machines/h200.cudnn.json", &size);
    LsDnnDesc device = ls_dnn_device_of_json(&lib, json, err, sizeof err);
    ck_assert_ptr_nonnull(device);
    for (int tf32 = 0; tf32 < 2; tf32++)
        ck_assert_ptr_null(ls_dnn_search(&lib, device, &c, &(LsDnnRules){.tf32 = tf32}, INT64_MAX,
                                         8, err, sizeof err));
    ls_dnn_drop(&lib, device);
    ls_dnn_close(&lib);
    free(json);
}
END_TEST

START_TEST(without_cudnn_or_a_gpu_no_relu_is_taken_in)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "vgg16", 1);
    setenv("LOWERSET_CUDNN", "/nowhere/libcudnn.so.9", 1);
    LsTarget t = {.kind = LS_TARGET_CUDA, .real_bytes = 4, .device = "h200",
                  .convs = planner(&cx, "h200", false, 0)}, cpu = ls_target_cpu(4);
    ck_assert_uint_eq(ls_conv_fuse(g, &t), 0);
    ck_assert_uint_eq(ls_conv_fuse(g, &cpu), 0);
    ck_assert_uint_eq(ls_conv_fuse_gradients(&cx, g, &t), 0);
    ck_assert_uint_eq(ls_conv_fuse_gradients(&cx, g, &cpu), 0);
    ls_conv_planner_free(t.convs);
    ls_arena_free(cx.arena);
}
END_TEST

/* ---- single convolutions ---- */
static LsGraph *one_conv(LsCtx *cx, LsOpCode op, const LsShape *a, const LsShape *b, bool bias,
                         const LsWindowAttr *at)
{
    LsGraph *g = ls_graph_new(cx);
    LsValueId in[3] = {ls_value_add(cx, g, LS_V_INPUT, "a", LS_REAL, a, NULL),
                       ls_value_add(cx, g, LS_V_INPUT, "b", LS_REAL, b, NULL)};
    int64_t channels = op == LS_OP_CONV ? b->dim[0] : b->dim[1] * at->group;
    if (bias)
        in[2] = ls_value_add(cx, g, LS_V_INPUT, "bias", LS_REAL, &(LsShape){1, {channels}}, NULL);
    cx->log = stdout;
    ck_assert(ls_is(ls_append(cx, g, op, bias ? 3 : 2, in, &(LsAttr){.window = *at})));
    return g;
}

START_TEST(unusual_windows_are_planned_too)
{
    static const struct {
        const char *what;
        LsOpCode op;
        LsShape a, b;
        LsWindowAttr at;
        bool bias;
    } row[] = {
        {"one axis", LS_OP_CONV, {3, {4, 16, 100}}, {3, {32, 16, 5}},
         {.n = 1, .kernel = {5}, .stride = {2}, .dilation = {1}, .pad_lo = {2}, .pad_hi = {2},
          .group = 1}, true},
        {"three axes", LS_OP_CONV, {5, {2, 8, 6, 12, 12}}, {5, {16, 8, 3, 3, 3}},
         {.n = 3, .kernel = {3, 3, 3}, .stride = {1, 2, 2}, .dilation = {1, 1, 1},
          .pad_lo = {1, 1, 1}, .pad_hi = {1, 1, 1}, .group = 1}, false},
        {"dilated", LS_OP_CONV, {4, {2, 64, 28, 28}}, {4, {64, 64, 3, 3}},
         {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {4, 4}, .pad_lo = {4, 4},
          .pad_hi = {4, 4}, .group = 1}, false},
        {"more padding behind", LS_OP_CONV, {4, {2, 32, 15, 15}}, {4, {32, 32, 3, 3}},
         {.n = 2, .kernel = {3, 3}, .stride = {2, 2}, .dilation = {1, 1}, .pad_lo = {0, 0},
          .pad_hi = {1, 1}, .group = 1}, false},
        {"depthwise", LS_OP_CONV, {4, {2, 96, 28, 28}}, {4, {96, 1, 3, 3}},
         {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .pad_lo = {1, 1},
          .pad_hi = {1, 1}, .group = 96}, true},
        {"groups", LS_OP_CONV, {4, {2, 64, 28, 28}}, {4, {128, 16, 3, 3}},
         {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .pad_lo = {1, 1},
          .pad_hi = {1, 1}, .group = 4}, false},
        {"transposed", LS_OP_CONV_DX, {4, {2, 64, 14, 14}}, {4, {64, 32, 2, 2}},
         {.n = 2, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}, .group = 1,
          .x_dim = {28, 28}}, true},
        {"transposed, output padding", LS_OP_CONV_DX, {4, {2, 16, 7, 7}}, {4, {16, 8, 3, 3}},
         {.n = 2, .kernel = {3, 3}, .stride = {2, 2}, .dilation = {1, 1}, .pad_lo = {1, 1},
          .pad_hi = {1, 1}, .group = 1, .x_dim = {14, 14}}, false},
        {"weights of a stem", LS_OP_CONV_DW, {4, {2, 64, 56, 56}}, {4, {2, 3, 112, 112}},
         {.n = 2, .kernel = {7, 7}, .stride = {2, 2}, .dilation = {1, 1}, .pad_lo = {3, 3},
          .pad_hi = {3, 3}, .group = 1}, false},
    };
    if (!have_cudnn())
        return;
    LsCtx cx = {.arena = ls_arena_new()};
    for (int real = 4; real <= 8; real += 4)
        for (int tf32 = 0; tf32 < 2; tf32++) {
            LsConvPlanner *p = planner(&cx, "h200", tf32, 0);
            for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
                LsGraph *g = one_conv(&cx, row[k].op, &row[k].a, &row[k].b, row[k].bias,
                                      &row[k].at);
                const LsConvChoice *c = ls_conv_choose(p, g, (LsNodeId){1}, real);
                if (c->own)
                    printf("%s, f%d: %s\n", row[k].what, 8 * real, c->why);
                ck_assert_msg(!c->own || real == 8, "%s: %s", row[k].what, c->why);
                ck_assert(c->own || c->conv.bias + c->bias_apart == row[k].bias);
            }
            ls_conv_planner_free(p);
        }
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(a_window_that_stops_short_of_the_result_is_not_for_cudnn)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsDnnConv c;
    const char *why = NULL;
    LsWindowAttr at = {.n = 2, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}, .group = 1,
                       .x_dim = {17, 17}};
    LsGraph *g = one_conv(&cx, LS_OP_CONV_DX, &(LsShape){4, {1, 4, 7, 7}},
                          &(LsShape){4, {4, 4, 2, 2}}, false, &at);
    ck_assert(!ls_conv_of_node(g, (LsNodeId){1}, 4, &c, &why));
    ck_assert_ptr_nonnull(why);
    ls_arena_free(cx.arena);
}
END_TEST

/* ---- the library ---- */
/* A library with this version and no further functions. */
static const char *fake_library(int version)
{
    static char path[256];
    char command[700], name[40];
    snprintf(name, sizeof name, "libfake%d.so", version);       /* an opened library stays open */
    snprintf(path, sizeof path, "%s", in_dir(name));
    snprintf(command, sizeof command, "echo 'unsigned long cudnnGetVersion(void) { return %d; }' | "
             "cc -shared -fPIC -x c - -o %s", version, path);
    ck_assert_int_eq(system(command), 0);
    return path;
}

START_TEST(a_library_that_will_not_do_is_named_with_its_version)
{
    LsDnn lib;
    char err[1300];
    setenv("LOWERSET_CUDNN", "/nowhere/libcudnn.so.9", 1);
    ck_assert(!ls_dnn_open(&lib, err, sizeof err));
    ck_assert_ptr_nonnull(strstr(err, "/nowhere/libcudnn.so.9"));
    setenv("LOWERSET_CUDNN", fake_library(8907), 1);
    ck_assert(!ls_dnn_open(&lib, err, sizeof err));
    ck_assert_msg(strstr(err, "libfake8907.so is version 8.9.7, 9.0 or later") != NULL, "%s", err);
    setenv("LOWERSET_CUDNN", fake_library(91900), 1);
    ck_assert(!ls_dnn_open(&lib, err, sizeof err));
    ck_assert_msg(strstr(err, "(version 9.19.0) has no function cudnn") != NULL, "%s", err);
}
END_TEST

START_TEST(without_cudnn_workspaces_are_estimates_and_said_to_be)
{
    setenv("LOWERSET_CUDNN", "/nowhere/libcudnn.so.9", 1);
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "resnet18", 2);
    LsConvPlanner *p = planner(&cx, "h200", false, 1 << 24);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (is_conv(g, i)) {
            const LsConvChoice *c = ls_conv_choose(p, g, (LsNodeId){i}, 4);
            ck_assert(!c->own && c->json == NULL && c->workspace >= 0 && c->workspace <= 1 << 24);
        }
    ck_assert_ptr_nonnull(strstr(ls_conv_planner_estimates(p), "/nowhere/libcudnn.so.9"));
    ck_assert_int_eq(ls_conv_planner_version(p), 0);
    ls_conv_planner_free(p);
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(an_unknown_device_is_named)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsConvPlanner *p = planner(&cx, "abacus", false, 0);
    ck_assert_ptr_nonnull(strstr(ls_conv_planner_estimates(p), "abacus"));
    ls_conv_planner_free(p);
    ls_arena_free(cx.arena);
}
END_TEST

/* ---- the cache ---- */
/* The one file in the cache folder. */
static const char *cache_file(void)
{
    static char path[600];
    DIR *d = opendir(in_dir("cache/lowerset"));
    ck_assert_ptr_nonnull(d);
    path[0] = '\0';
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".plans") != NULL)
            snprintf(path, sizeof path, "%s/%s", in_dir("cache/lowerset"), e->d_name);
    closedir(d);
    return path;
}

START_TEST(a_cache_gives_back_what_was_put_in)
{
    char folder[512];
    setenv("XDG_CACHE_HOME", in_dir("cache"), 1);
    LsPlanCache *c = ls_plan_cache_open(ls_plan_cache_folder(folder, sizeof folder), "one.plans");
    ck_assert_ptr_null(ls_plan_cache_find(c, "key"));
    ls_plan_cache_put(c, "key", "another value");
    ls_plan_cache_put(c, "key", "a value");
    ls_plan_cache_put(c, "tab", "not\tkept");
    ls_plan_cache_close(c);
    c = ls_plan_cache_open(folder, "one.plans");
    ck_assert_str_eq(ls_plan_cache_find(c, "key"), "a value");
    ck_assert_ptr_null(ls_plan_cache_find(c, "tab"));
    ls_plan_cache_close(c);
    unlink(in_dir("cache/lowerset/one.plans"));
}
END_TEST

/* Choices read from the file equal the choices that were made, and damage to the file does not
 * change them. */
START_TEST(a_broken_cache_does_no_harm)
{
    if (!have_cudnn())
        return;
    setenv("XDG_CACHE_HOME", in_dir("cache"), 1);
    LsCtx cx = {.arena = ls_arena_new()};
    LsGraph *g = compiled(&cx, "cnn", 4);
    LsConvPlanner *p = planner(&cx, "a100", true, 0);
    Tally first = plan_all(p, g);
    ls_conv_planner_free(p);
    size_t size;
    char *text = (char *)slurp(cache_file(), &size);
    ck_assert_int_gt(size, 1000);
    for (int damage = 0; damage < 6; damage++) {
        FILE *f = fopen(cache_file(), "wb");
        if (damage == 1)
            text[size / 2] ^= 1;
        if (damage == 5)
            memset(text, '\t', size);
        fwrite(text, 1, damage == 2 ? size / 3 : damage == 3 ? 0 : size, f);
        if (damage == 4)
            fputs("0123456789abcdef\tforward\t-7 99999999999999999999 x\n\n\t\t\n", f);
        fclose(f);
        p = planner(&cx, "a100", true, 0);
        Tally t = plan_all(p, g);
        ck_assert_msg(memcmp(&first, &t, sizeof t) == 0, "damage %d changes the choices", damage);
        ls_conv_planner_free(p);
    }
    free(text);
    ls_arena_free(cx.arena);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        every_convolution_of_the_zoo_has_an_exact_plan, every_device_that_ships_can_be_planned_for,
        a_workspace_limit_is_kept, weight_gradients_have_room_for_what_no_description_tells,
        relus_behind_convolutions_with_a_bias_are_taken_in,
        without_cudnn_or_a_gpu_no_relu_is_taken_in, no_engine_sums_statistics_without_compiling,
        unusual_windows_are_planned_too,
        a_window_that_stops_short_of_the_result_is_not_for_cudnn,
        a_library_that_will_not_do_is_named_with_its_version,
        without_cudnn_workspaces_are_estimates_and_said_to_be, an_unknown_device_is_named,
        a_cache_gives_back_what_was_put_in, a_broken_cache_does_no_harm,
    };
    TCase *tc = tcase_create("conv_plan");
    if (mkdtemp(dir) == NULL)
        return perror(dir), 1;
    setenv("XDG_CACHE_HOME", in_dir("none"), 1);
    tcase_set_timeout(tc, 300);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_models("conv_plan", tc);
}
