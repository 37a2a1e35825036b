/* models/zoo.h -- the networks that can be generated, their options, and one call to write one. */
#ifndef LS_MODELS_ZOO_H
#define LS_MODELS_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Options, in the order of the help text. A model takes the first four and those of its row. */
typedef enum {
    LS_OPT_BATCH,               /* 0: the symbolic dimension N */
    LS_OPT_SEED,
    LS_OPT_WEIGHTS,             /* LsWeightsPlace */
    LS_OPT_DROPOUT,             /* hundredths of a percent: 1000 is a rate of 0.1 */
    LS_OPT_SIZE, LS_OPT_CHANNELS, LS_OPT_CLASSES, LS_OPT_WIDTH, LS_OPT_DEPTH,
    LS_OPT_HEADS, LS_OPT_CONTEXT, LS_OPT_VOCAB,
    LS_OPT_STEM, LS_OPT_UP, LS_OPT_PAD, LS_OPT_BN, LS_OPT_HEAD,     /* enumerations below */
    LS_NOPTS
} LsModelOptionId;

enum { LS_STEM_IMAGENET = 1, LS_STEM_CIFAR };   /* 7x7 stride 2 and a pool; 3x3 */
enum { LS_UP_DECONV = 1, LS_UP_BILINEAR };
enum { LS_PAD_SAME = 1, LS_PAD_VALID };
enum { LS_BN_OFF = 1, LS_BN_ON };
enum { LS_HEAD_TIED = 1, LS_HEAD_UNTIED };

typedef struct LsModelOption {
    const char *name, *help;    /* "size"; what it means */
    const char *choice;         /* "deconv|bilinear": the enumeration's words, from 1; or NULL */
    int64_t min, max;           /* of a number */
} LsModelOption;
extern const LsModelOption ls_model_options[LS_NOPTS];

struct LsBuild;
struct LsModelRequest;
typedef struct LsModel {
    const char *name, *help;
    void (*build)(struct LsBuild *, const struct LsModelRequest *);
    int variant;                /* 18, 34, 121, ...: what the family's file knows it by */
    int64_t preset[LS_NOPTS];   /* from LS_OPT_SIZE on: 0 where there is no such option */
} LsModel;

typedef struct LsModelRequest {
    const LsModel *model;
    int64_t value[LS_NOPTS];    /* by LsModelOptionId */
} LsModelRequest;

typedef struct LsModelInfo { int64_t parameters; uint32_t nodes; } LsModelInfo;

const LsModel *ls_model_find(const char *name);     /* NULL: none of that name */
const LsModel *ls_model_at(size_t i);               /* the i-th of the list; NULL past its end */
LsModelRequest ls_model_request(const LsModel *m);  /* with every option at its preset */

/* Sets one option from text ("64", "0.1", "bilinear"). False with a sentence in err if the
 * model does not take it, or not that value. */
bool ls_model_set(LsModelRequest *r, const char *name, const char *value, char *err, size_t size);

/* Writes the network to `path`; info may be NULL. Returns 0, or with a sentence in err 1 (cannot be
 * written) or 2 (options that do not go together). */
int ls_model_write(const LsModelRequest *r, const char *path, LsModelInfo *info,
                   char *err, size_t size);
/* The same without a file. */
int ls_model_count(const LsModelRequest *r, LsModelInfo *info, char *err, size_t size);

/* `lowerset model --list` and `lowerset model NAME [--option=value ...] -o FILE.onnx`; argv is
 * that of main, argv[1] "model". Returns the exit code: 0 done, 1 not written, 2 usage. */
int ls_model_main(int argc, char **argv);
/* Lines for people: one per model; one per option of a model. */
void ls_model_list(FILE *to);
void ls_model_help(FILE *to, const LsModel *m);
/* "model --option" lines. */
void ls_model_table(FILE *to);

#endif
