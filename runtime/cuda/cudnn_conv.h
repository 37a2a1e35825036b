/* runtime/cuda/cudnn_conv.h -- convolutions as cuDNN's operation graphs, and execution plans for
 * them. The compiler uses it to plan for a device that is described, the training program to check
 * and repeat that on the device that is there. */
#ifndef LS_CUDNN_CONV_H
#define LS_CUDNN_CONV_H

#include "runtime/cuda/cudnn_library.h"
#include "runtime/cuda/cudnn_shape.h"

typedef struct LsDnnPlan {
    LsDnnDesc plan;             /* finalised; after ls_dnn_plan_load it needs no other descriptor */
    int64_t workspace;          /* bytes */
    int engine;                 /* cuDNN's number of it */
    int place;                  /* among those that may serve, best first */
    bool tensor_core;
    bool compiled;              /* when the plan is made */
} LsDnnPlan;

/* A device as cuDNN describes it in JSON: from such a text, or the one with this number. NULL with
 * a sentence in err. Drop with ls_dnn_drop of cudnn_graph.h. */
LsDnnDesc ls_dnn_device_of_json(const LsDnn *lib, const char *json, char *err, size_t size);
LsDnnDesc ls_dnn_device_of_id(const LsDnn *lib, int32_t id, char *err, size_t size);

/* The device as text, to be freed; NULL: cuDNN refuses, or out of memory. */
char *ls_dnn_device_json(const LsDnn *lib, LsDnnDesc device);

/* What the graph reads and writes, in bytes. */
int64_t ls_dnn_conv_bytes(const LsDnnConv *c);

enum { LS_DNN_TEXT = 400 };
/* "forward+bias f32 tf32 x 2,3,8,8 w 4,3,3,3 y 2,4,8,8 stride 1,1 dilation 1,1 pad 1,1 1,1": all
 * that a choice depends on but for cuDNN, the device and the room. text: LS_DNN_TEXT bytes. */
void ls_dnn_conv_text(const LsDnnConv *c, const LsDnnRules *r, char *text);

typedef struct LsDnnSearch LsDnnSearch;     /* plans and all that they depend on */

/* The plans that cuDNN's heuristics propose, that the rules allow and that can be made, best first:
 * mode A, else B, else the fallback list. workspace: bytes they may need at most. At most `room`
 * plans. NULL with a sentence in err if there is none. */
LsDnnSearch *ls_dnn_search(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                           const LsDnnRules *rules, int64_t workspace, int room, char *err,
                           size_t size);
/* Whether some mode proposes an engine that the rules allow: cuDNN's support check. Unlike a search
 * it makes no plan, which engines that compile cannot have where there is no driver. */
bool ls_dnn_supports(const LsDnn *lib, LsDnnDesc device, const LsDnnConv *c,
                     const LsDnnRules *rules);
int ls_dnn_search_count(const LsDnnSearch *s);
const LsDnnPlan *ls_dnn_search_plan(const LsDnnSearch *s, int k);
/* The best of them: heuristics say in which order plans are fast, not how much faster, so a place
 * counts as 15 % of the time, and a workspace as large as the graph's tensors as a quarter. (Of 201
 * convolutions of three networks in TF32, timed on an H200, the first place took 3 % longer in sum
 * than the fastest plan.)
 * Nothing without tensor cores is taken for its small workspace where the best has them. */
const LsDnnPlan *ls_dnn_search_best(const LsDnnSearch *s);
void ls_dnn_search_free(LsDnnSearch *s);

/* The plan as text, to be freed; NULL: out of memory or refused. */
char *ls_dnn_plan_json(const LsDnn *lib, const LsDnnPlan *p);
/* A plan from that text, for this device; false with a sentence in err. Drop p->plan. */
bool ls_dnn_plan_load(const LsDnn *lib, LsDnnDesc device, const char *json, LsDnnPlan *p, char *err,
                      size_t size);

#endif
