/* runtime/cuda/cudnn_conv.h -- convolutions as cuDNN's operation graphs, and execution plans for
 * them. The compiler plans with it for a described device; the training program checks and repeats
 * the planning on the actual device. */
#ifndef LS_CUDNN_CONV_H
#define LS_CUDNN_CONV_H

#include "runtime/cuda/cudnn_library.h"
#include "runtime/cuda/cudnn_shape.h"

typedef struct LsDnnPlan {
    LsDnnDesc plan;             /* finalised; after ls_dnn_plan_load it needs no other descriptor */
    int64_t workspace;          /* bytes */
    int engine;                 /* cuDNN's number of the engine */
    int place;                  /* rank among the permitted engines, best first */
    bool tensor_core;
    bool compiled;              /* the engine compiles its kernel when the plan is made */
} LsDnnPlan;

/* A device by cuDNN's description in JSON, or by device number. NULL with a sentence in err. Drop
 * with ls_dnn_drop of cudnn_graph.h. */
LsDnnDesc ls_dnn_device_of_json(const LsDnn *lib, const char *json, char *err, size_t size);
LsDnnDesc ls_dnn_device_of_id(const LsDnn *lib, int32_t id, char *err, size_t size);

/* The device as text, freed by the caller; NULL: cuDNN refuses, or out of memory. */
char *ls_dnn_device_json(const LsDnn *lib, LsDnnDesc device);

/* Bytes that the graph reads and writes. */
int64_t ls_dnn_conv_bytes(const LsDnnConv *c);

enum { LS_DNN_TEXT = 400 };
/* "forward+bias f32 tf32 x 2,3,8,8 w 4,3,3,3 y 2,4,8,8 stride 1,1 dilation 1,1 pad 1,1 1,1":
 * everything that a choice depends on except cuDNN, the device and the workspace. text: LS_DNN_TEXT
 * bytes. */
void ls_dnn_conv_text(const LsDnnConv *c, const LsDnnRules *r, char *text);

typedef struct LsDnnSearch LsDnnSearch;     /* plans and the descriptors that they depend on */

/* The plans that cuDNN's heuristics propose, the rules allow and cuDNN can build, best first: of
 * mode A, else B, else the fallback list. workspace: most bytes that a plan may need. At most
 * `room` plans. NULL with a sentence in err if there is no plan. */
LsDnnSearch *ls_dnn_search(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                           const LsDnnRules *rules, int64_t workspace, int room, char *err,
                           size_t size);
/* Whether some mode proposes an engine that the rules allow: cuDNN's support check. Unlike a search
 * it builds no plan; engines that compile cannot build one without a driver. */
bool ls_dnn_supports(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                     const LsDnnRules *rules);
int ls_dnn_search_count(const LsDnnSearch *s);
const LsDnnPlan *ls_dnn_search_plan(const LsDnnSearch *s, int k);
/* The best plan. Heuristics rank plans by speed but give no times, so a rank counts as 15 % of the
 * time, and a workspace as large as the graph's tensors as a quarter. (Over 201 convolutions of
 * three networks in TF32, timed on an H200, the first rank took 3 % longer in sum than the fastest
 * plan.)
 * A plan without tensor cores is not chosen for its small workspace when the best has them. */
const LsDnnPlan *ls_dnn_search_best(const LsDnnSearch *s);
void ls_dnn_search_free(LsDnnSearch *s);

/* The plan as text, freed by the caller; NULL: out of memory or refused. */
char *ls_dnn_plan_json(const LsDnn *lib, const LsDnnPlan *p);
/* Loads a plan from that text for this device; false with a sentence in err. The caller drops
 * p->plan. */
bool ls_dnn_plan_load(const LsDnn *lib, LsDnnDesc device, const char *json, LsDnnPlan *p, char *err,
                      size_t size);

#endif
