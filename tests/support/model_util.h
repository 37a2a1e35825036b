/* tests/support/model_util.h -- shared by the suites on generated networks: `lowerset model`
 * without a process, and files read back. */
#ifndef LS_TESTS_SUPPORT_MODEL_UTIL_H
#define LS_TESTS_SUPPORT_MODEL_UTIL_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/zoo.h"
#include "models/zoo_cli.h"
#include "onnx.pb-c.h"
#include "tests/support/suite.h"

static char dir[] = "/tmp/lowerset-models-XXXXXX";

static inline const char *in_dir(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

/* `lowerset model LINE -o FILE`, LINE split at blanks. Standard error is kept quiet. */
static inline int run(const char *line, const char *file)
{
    char words[512], *argv[32] = {"lowerset", "model"};
    int argc = 2;
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

static inline uint8_t *slurp(const char *path, size_t *n)
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

static inline const char *complaint(void)
{
    static char text[1024];
    size_t n;
    uint8_t *bytes = slurp(in_dir("stderr"), &n);
    snprintf(text, sizeof text, "%s", (char *)bytes);
    free(bytes);
    return text;
}

static inline Onnx__ModelProto *load(const char *path)
{
    size_t n;
    uint8_t *bytes = slurp(path, &n);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, n, bytes);
    free(bytes);
    ck_assert_msg(m != NULL, "%s does not parse", path);
    return m;
}

static inline Onnx__ModelProto *made(const char *line)
{
    const char *path = in_dir("made.onnx");
    ck_assert_msg(run(line, path) == 0, "%s: %s", line, complaint());
    return load(path);
}

static inline void drop(Onnx__ModelProto *m) { onnx__model_proto__free_unpacked(m, NULL); }

static inline int64_t elements(const Onnx__TensorProto *t)
{
    int64_t n = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        n *= t->dims[i];
    return n;
}

static inline Onnx__TensorProto *initializer(const Onnx__ModelProto *m, const char *name)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (strcmp(m->graph->initializer[i]->name, name) == 0)
            return m->graph->initializer[i];
    return NULL;
}

/* Small forms of all networks, with weights. */
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
    "vit --width=32 --heads=4 --depth=2 --size=16 --patch=8 --classes=5 --dropout=0.1",
};
enum { NSMALL = sizeof small / sizeof *small };

/* Runs the tests and removes their folder; the exit code of the suite. */
static inline int run_models(const char *name, TCase *tc)
{
    char command[64];
    int code = run_tests(name, tc);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) != 0 || code != 0;
}

#endif
