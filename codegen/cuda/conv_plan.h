/* codegen/cuda/conv_plan.h -- the engine of cuDNN that serves each convolution, and its workspace,
 * chosen without a GPU from a description of the device. */
#ifndef LS_CODEGEN_CONV_PLAN_H
#define LS_CODEGEN_CONV_PLAN_H

#include "compiler/ir/graph.h"
#include "runtime/cuda/cudnn_conv.h"

/* The operand that ls_conv_fuse_gradients adds to a data gradient: the result of a ReLU. */
enum { LS_CONV_MASK = 3 };

typedef struct LsConvWishes {
    const char *device;         /* a known machine ("h200"), or a file of cuDNN's JSON */
    LsDnnRules rules;
    bool compiled;              /* engines that compile a kernel at the program's start may serve a
                                 * convolution with its epilogue if no other engine does */
    int64_t workspace;          /* most bytes for one convolution; 0: any */
} LsConvWishes;

typedef struct LsConvChoice {
    LsDnnConv conv;             /* the graph that runs: the bias only where an engine adds it */
    bool bias_apart;            /* a kernel after it adds the bias */
    bool alone;                 /* the plan is for the convolution alone, since no engine here now
                                 * does all of conv */
    bool compiled;              /* alone: a compiled engine may do all, when the program starts */
    bool own;                   /* no engine serves: a generated kernel */
    int64_t workspace;          /* bytes */
    int engine, place;          /* cuDNN's number of the engine; its rank (LsDnnPlan) */
    bool tensor_core;
    const char *json;           /* the plan; NULL: own, or an estimate made without cuDNN */
    const char *why;            /* own: a sentence */
} LsConvChoice;

typedef struct LsConvPlanner LsConvPlanner;     /* of one compilation */

/* Never NULL: the planner estimates if cuDNN is missing or refuses to plan for an absent device, or
 * if the device is unknown. */
LsConvPlanner *ls_conv_planner_new(struct LsArena *a, const LsConvWishes *w);
/* Keeps new plans for later compilations and closes cuDNN. NULL: nothing. */
void ls_conv_planner_free(LsConvPlanner *p);

/* Why workspace sizes are estimates: a sentence; NULL when they are exact. */
const char *ls_conv_planner_estimates(const LsConvPlanner *p);
int64_t ls_conv_planner_version(const LsConvPlanner *p);        /* of cuDNN, 91900; 0: none */
const LsConvWishes *ls_conv_planner_wishes(const LsConvPlanner *p);

/* Describes CONV, CONV_DX or CONV_DW to cuDNN; real_bytes: of a tensor of reals, unless it is
 * stored in 16 bits. False if cuDNN has no such convolution; *why is then a sentence. */
bool ls_conv_of_node(const LsGraph *g, LsNodeId n, int real_bytes, LsDnnConv *c, const char **why);

/* The choice without cuDNN, with the workspace that cuDNN's engines take on most shapes. */
void ls_conv_estimate(const LsGraph *g, LsNodeId n, int real_bytes, const LsConvWishes *w,
                      LsConvChoice *to);

/* The choice for node n; equal convolutions get the same choice. Never NULL. */
const LsConvChoice *ls_conv_choose(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes);

/* Whether an engine does data gradient n together with the gradient of the ReLU that made n's x. */
bool ls_conv_takes_mask(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes);

#endif
