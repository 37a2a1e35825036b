/* models/model_request.h -- a network, and the options requested for it. */
#ifndef LS_MODELS_MODEL_REQUEST_H
#define LS_MODELS_MODEL_REQUEST_H

#include <stdint.h>

/* Options, in the order of the help text. Every model takes the first four, and the options of its
 * row. */
typedef enum {
    LS_OPT_BATCH,               /* 0: the symbolic dimension N */
    LS_OPT_SEED,
    LS_OPT_WEIGHTS,             /* LsWeightsPlace */
    LS_OPT_DROPOUT,             /* hundredths of a percent: 1000 is a rate of 0.1 */
    LS_OPT_SIZE, LS_OPT_CHANNELS, LS_OPT_CLASSES, LS_OPT_WIDTH, LS_OPT_DEPTH,
    LS_OPT_HEADS, LS_OPT_PATCH, LS_OPT_CONTEXT, LS_OPT_VOCAB,
    LS_OPT_STEM, LS_OPT_UP, LS_OPT_PAD, LS_OPT_BN, LS_OPT_BIAS, LS_OPT_HEAD,
                                /* enumerations below */
    LS_NOPTS
} LsModelOptionId;

enum { LS_STEM_IMAGENET = 1, LS_STEM_CIFAR };   /* 7x7 stride 2 and a pool; 3x3 */
enum { LS_UP_DECONV = 1, LS_UP_BILINEAR };
enum { LS_PAD_SAME = 1, LS_PAD_VALID };
enum { LS_BN_OFF = 1, LS_BN_ON };
enum { LS_BIAS_OFF = 1, LS_BIAS_ON };
enum { LS_HEAD_TIED = 1, LS_HEAD_UNTIED };

struct LsBuild;
struct LsModelRequest;
typedef struct LsModel {
    const char *name, *help;
    void (*build)(struct LsBuild *, const struct LsModelRequest *);
    int variant;                /* 18, 34, 121, ...: the variant's number within its family */
    int64_t preset[LS_NOPTS];   /* from LS_OPT_SIZE on: 0 where the model lacks the option */
} LsModel;

typedef struct LsModelRequest {
    const LsModel *model;
    int64_t value[LS_NOPTS];    /* by LsModelOptionId */
} LsModelRequest;

#endif
