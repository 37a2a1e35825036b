/* models/zoo.c -- the table of networks, the table of options, and the generation of a file from
 * both. */
#include "models/zoo.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/families.h"
#include "models/model_write.h"

enum { PARTS = 10000 };     /* a rate of 1 in the units of LS_OPT_DROPOUT */

const LsModelOption ls_model_options[LS_NOPTS] = {
    [LS_OPT_BATCH] = {"batch", "fixed batch size; 0 leaves the dimension N open", NULL, 0, 1 << 20},
    [LS_OPT_SEED] = {"seed", "seed of the initial weights", NULL, 0, INT64_MAX},
    [LS_OPT_WEIGHTS] = {"weights",
                        "initial weights: in the file; in FILE.weights; or none, for planning",
                        "random|external|none", 0, 0},
    [LS_OPT_DROPOUT] = {"dropout", "rate of the dropout layers; 0 leaves them out", NULL, 0,
                        PARTS - 1},
    [LS_OPT_SIZE] = {"size", "height and width of the images", NULL, 1, 1 << 14},
    [LS_OPT_CHANNELS] = {"channels", "channels of the images", NULL, 1, 1 << 12},
    [LS_OPT_CLASSES] = {"classes", "scores per image, or per pixel in segmentation", NULL, 1,
                        1 << 24},
    [LS_OPT_WIDTH] = {"width",
                      "channels of the first layers (DenseNet: growth rate; MLP, GPT, "
                      "ViT: hidden units)",
                      NULL, 1, 1 << 16},
    [LS_OPT_DEPTH] = {"depth", "levels, layers or blocks (autoencoder: numbers in the code)", NULL,
                      1, 512},
    [LS_OPT_HEADS] = {"heads", "heads of the attention", NULL, 1, 1 << 12},
    [LS_OPT_PATCH] = {"patch", "height and width of a patch, which becomes a token", NULL, 1,
                      1 << 10},
    [LS_OPT_CONTEXT] = {"context", "tokens in a sequence", NULL, 1, 1 << 15},
    [LS_OPT_VOCAB] = {"vocab", "different tokens", NULL, 1, 1 << 24},
    [LS_OPT_STEM] = {"stem", "first layers: 7x7 stride 2 and a pool, or 3x3 for small images",
                     "imagenet|cifar", 0, 0},
    [LS_OPT_UP] = {"up", "way to double the size", "deconv|bilinear", 0, 0},
    [LS_OPT_PAD] = {"pad", "padding that keeps the size, or none, as in the paper", "same|valid", 0,
                    0},
    [LS_OPT_BN] = {"bn", "batch norm after the convolutions", "off|on", 0, 0},
    [LS_OPT_BIAS] = {"bias", "biases of convolutions in front of batch norms", "off|on", 0, 0},
    [LS_OPT_HEAD] = {"head", "weights of the scores: the token embedding's, or separate",
                     "tied|untied", 0, 0},
};

#define COMMON [LS_OPT_SEED] = 1, [LS_OPT_WEIGHTS] = LS_WEIGHTS_RANDOM
#define IMAGES(size, channels, classes) COMMON, [LS_OPT_SIZE] = (size), \
    [LS_OPT_CHANNELS] = (channels), [LS_OPT_CLASSES] = (classes)
#define RESNET(variant) {"resnet" #variant, "residual network of " #variant " layers", \
    ls_zoo_resnet, variant, {IMAGES(224, 3, 1000), [LS_OPT_WIDTH] = 64, \
    [LS_OPT_STEM] = LS_STEM_IMAGENET, [LS_OPT_BIAS] = LS_BIAS_OFF}}
#define DENSENET(variant, growth) {"densenet" #variant, \
    "densely connected network of " #variant " layers", ls_zoo_densenet, variant, \
    {IMAGES(224, 3, 1000), [LS_OPT_WIDTH] = (growth)}}
#define PSPNET(variant) {"pspnet" #variant, \
    "PSPNet, segmentation, on a dilated ResNet-" #variant, ls_zoo_pspnet, variant, \
    {IMAGES(713, 3, 19), [LS_OPT_WIDTH] = 64, [LS_OPT_DROPOUT] = PARTS / 10}}
#define VGG(name, help, variant, bn) {name, help, ls_zoo_vgg, variant, {IMAGES(224, 3, 1000), \
    [LS_OPT_WIDTH] = 64, [LS_OPT_BN] = (bn), [LS_OPT_DROPOUT] = PARTS / 2}}

static const LsModel models[] = {
    {"autoencoder",
     "convolutional autoencoder of digits, code of 32 numbers",
     ls_zoo_autoencoder,
     0,
     {COMMON, [LS_OPT_SIZE] = 28, [LS_OPT_CHANNELS] = 1, [LS_OPT_WIDTH] = 8, [LS_OPT_DEPTH] = 32}},
    {"cnn",
     "two convolutions and two dense layers",
     ls_zoo_cnn,
     0,
     {IMAGES(128, 1, 10), [LS_OPT_WIDTH] = 32, [LS_OPT_DEPTH] = 2}},
    DENSENET(121, 32),
    DENSENET(161, 48),
    DENSENET(169, 32),
    DENSENET(201, 32),
    {"digits",
     "classifier of PyTorch's example for MNIST",
     ls_zoo_digits,
     0,
     {IMAGES(28, 1, 10), [LS_OPT_WIDTH] = 32}},
    {"googlenet",
     "GoogLeNet with batch norm, without auxiliary heads",
     ls_zoo_googlenet,
     0,
     {IMAGES(224, 3, 1000), [LS_OPT_WIDTH] = 64, [LS_OPT_DROPOUT] = PARTS / 5}},
    {"gpt",
     "decoder-only transformer, GPT-2's smallest",
     ls_zoo_gpt,
     0,
     {COMMON, [LS_OPT_WIDTH] = 768, [LS_OPT_DEPTH] = 12, [LS_OPT_HEADS] = 12,
      [LS_OPT_CONTEXT] = 1024, [LS_OPT_VOCAB] = 50257, [LS_OPT_HEAD] = LS_HEAD_TIED}},
    {"mlp",
     "multilayer perceptron",
     ls_zoo_mlp,
     0,
     {IMAGES(28, 1, 10), [LS_OPT_WIDTH] = 2048, [LS_OPT_DEPTH] = 1}},
    PSPNET(50),
    PSPNET(101),
    RESNET(18),
    RESNET(34),
    RESNET(50),
    RESNET(101),
    RESNET(152),
    {"unet",
     "U-Net, segmentation, with batch norm",
     ls_zoo_unet,
     0,
     {IMAGES(572, 3, 2), [LS_OPT_WIDTH] = 64, [LS_OPT_DEPTH] = 4, [LS_OPT_UP] = LS_UP_DECONV,
      [LS_OPT_PAD] = LS_PAD_SAME, [LS_OPT_BIAS] = LS_BIAS_OFF}},
    VGG("vgg16", "VGG of 16 layers", 16, LS_BN_OFF),
    VGG("vgg16_bn", "VGG of 16 layers, with batch norm", 16, LS_BN_ON),
    VGG("vgg19", "VGG of 19 layers", 19, LS_BN_OFF),
    VGG("vgg19_bn", "VGG of 19 layers, with batch norm", 19, LS_BN_ON),
    {"vit",
     "vision transformer, ViT-B/16",
     ls_zoo_vit,
     0,
     {IMAGES(224, 3, 1000), [LS_OPT_WIDTH] = 768, [LS_OPT_DEPTH] = 12, [LS_OPT_HEADS] = 12,
      [LS_OPT_PATCH] = 16}},
};

const LsModel *ls_model_at(size_t i)
{
    return i < sizeof models / sizeof *models ? &models[i] : NULL;
}

const LsModel *ls_model_find(const char *name)
{
    for (size_t i = 0; ls_model_at(i) != NULL; i++)
        if (strcmp(models[i].name, name) == 0)
            return &models[i];
    return NULL;
}

LsModelRequest ls_model_request(const LsModel *m)
{
    LsModelRequest r = {.model = m};
    memcpy(r.value, m->preset, sizeof r.value);
    return r;
}

/* The number of `word` in "a|b|c", from 1; 0: not among them. */
static int64_t choice_of(const char *choice, const char *word)
{
    size_t n = strlen(word);
    for (int64_t i = 1;; i++) {
        const char *end = strchr(choice, '|');
        size_t len = end != NULL ? (size_t)(end - choice) : strlen(choice);
        if (len == n && memcmp(choice, word, n) == 0)
            return i;
        if (end == NULL)
            return 0;
        choice = end + 1;
    }
}

static bool parse_rate(const char *text, int64_t *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v >= 0 && v < 1))
        return false;
    *out = (int64_t)lround(v * PARTS);
    return *out < PARTS;
}

static bool parse_count(const char *text, const LsModelOption *o, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return errno == 0 && end != text && *end == '\0' && v >= o->min && v <= o->max;
}

static bool set_value(LsModelRequest *r, int id, const char *value, char *err, size_t size)
{
    const LsModelOption *o = &ls_model_options[id];
    int64_t v = 0;
    if (o->choice != NULL && (v = choice_of(o->choice, value)) == 0)
        return snprintf(err, size, "--%s=%s: must be one of %s", o->name, value,
                        o->choice), false;
    if (id == LS_OPT_DROPOUT && !parse_rate(value, &v))
        return snprintf(err, size, "--dropout=%s: must be a rate of at least 0 and below 1", value),
               false;
    if (o->choice == NULL && id != LS_OPT_DROPOUT && !parse_count(value, o, &v))
        return snprintf(err, size, "--%s=%s: must be a whole number from %" PRId64 " to %" PRId64,
                        o->name, value, o->min, o->max), false;
    r->value[id] = v;
    return true;
}

bool ls_model_set(LsModelRequest *r, const char *name, const char *value, char *err, size_t size)
{
    for (int i = 0; i < LS_NOPTS; i++)
        if (strcmp(ls_model_options[i].name, name) == 0) {
            if (i >= LS_OPT_SIZE && r->model->preset[i] == 0)
                break;
            return set_value(r, i, value, err, size);
        }
    snprintf(err, size, "%s has no option --%s", r->model->name, name);
    return false;
}

static LsBuild *build(const LsModelRequest *r, LsArena *arena)
{
    LsBuild *b = ls_arena_alloc(arena, 1, sizeof *b);
    b->arena = arena;
    b->batch = r->value[LS_OPT_BATCH];
    b->dropout = (double)r->value[LS_OPT_DROPOUT] / PARTS;
    r->model->build(b, r);
    return b;
}

/* Copies the model's figures, or the error, from the builder to the caller. */
static void tell(const LsBuild *b, LsModelInfo *info, char *err, size_t size)
{
    if (b->failed)
        snprintf(err, size, "%s", b->err);
    else if (info != NULL)
        *info = (LsModelInfo){ls_build_parameters(b), b->nnode};
}

int ls_model_count(const LsModelRequest *r, LsModelInfo *info, char *err, size_t size)
{
    LsArena *arena = ls_arena_new();
    LsBuild *b = build(r, arena);
    tell(b, info, err, size);
    int code = b->failed ? 2 : 0;
    ls_arena_free(arena);
    return code;
}

/* "resnet18 --size=64": the options that differ from the presets, for the file's doc_string. */
static const char *recipe(LsArena *arena, const LsModelRequest *r)
{
    const char *text = ls_arena_printf(arena, "lowerset model %s", r->model->name);
    for (int i = 0; i < LS_NOPTS; i++) {
        const LsModelOption *o = &ls_model_options[i];
        const char *word = o->choice;
        if (r->value[i] == r->model->preset[i])
            continue;
        if (i == LS_OPT_DROPOUT) {
            text = ls_arena_printf(arena, "%s --dropout=%g", text, (double)r->value[i] / PARTS);
        } else if (word == NULL) {
            text = ls_arena_printf(arena, "%s --%s=%" PRId64, text, o->name, r->value[i]);
        } else {
            for (int64_t k = 1; k < r->value[i]; k++)
                word = strchr(word, '|') + 1;
            text = ls_arena_printf(arena, "%s --%s=%.*s", text, o->name, (int)strcspn(word, "|"),
                                   word);
        }
    }
    return text;
}

int ls_model_write(const LsModelRequest *r, const char *path, LsModelInfo *info,
                   char *err, size_t size)
{
    const int64_t most = INT64_C(1) << 34;      /* largest number of elements written: 64 GiB */
    LsArena *arena = ls_arena_new();
    LsBuild *b = build(r, arena);
    LsModelFile f = {path, r->model->name, recipe(arena, r), (uint64_t)r->value[LS_OPT_SEED],
                     (LsWeightsPlace)r->value[LS_OPT_WEIGHTS]};
    if (!b->failed && f.weights != LS_WEIGHTS_NONE && ls_build_parameters(b) > most)
        ls_build_fail(b, "%" PRId64 " parameters are more than 64 GiB; --weights=none writes the "
                      "network without them", ls_build_parameters(b));
    int code = b->failed ? 2 : ls_model_save(b, &f) ? 0 : 1;
    tell(b, info, err, size);
    ls_arena_free(arena);
    return code;
}
