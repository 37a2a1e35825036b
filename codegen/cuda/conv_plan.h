/* codegen/cuda/conv_plan.h -- which engine of cuDNN serves each convolution, and what workspace it
 * needs: decided without a GPU, from a description of it. */
#ifndef LS_CODEGEN_CONV_PLAN_H
#define LS_CODEGEN_CONV_PLAN_H

#include "compiler/ir/graph.h"
#include "runtime/cuda/cudnn_conv.h"

/* Operand of a data gradient that ls_conv_fuse_gradients adds: the result of a ReLU. */
enum { LS_CONV_MASK = 3 };

typedef struct LsConvWishes {
    const char *device;         /* a machine that is known ("h200"), or a file of cuDNN's JSON */
    LsDnnRules rules;
    bool compiled;              /* engines that compile a kernel when the program starts may serve
                                 * what no other does: a convolution with what is behind it */
    int64_t workspace;          /* most bytes of one convolution; 0: any */
} LsConvWishes;

typedef struct LsConvChoice {
    LsDnnConv conv;             /* the graph that runs: the bias only where an engine adds it */
    bool bias_apart;            /* a kernel behind it adds the bias */
    bool alone;                 /* the plan is that of the convolution alone, as no engine that is
                                 * there now does all of conv */
    bool compiled;              /* alone: one that compiles may, when the program starts */
    bool own;                   /* no engine serves: a generated kernel */
    int64_t workspace;          /* bytes */
    int engine, place;          /* cuDNN's number of it; how far from the best (LsDnnPlan) */
    bool tensor_core;
    const char *json;           /* the plan; NULL: own, or an estimate made without cuDNN */
    const char *why;            /* own: a sentence */
} LsConvChoice;

typedef struct LsConvPlanner LsConvPlanner;     /* of one compilation */

/* Never NULL: where cuDNN is missing, refuses to plan for a device that is not there, or the device
 * is not known, the planner estimates. */
LsConvPlanner *ls_conv_planner_new(struct LsArena *a, const LsConvWishes *w);
/* Keeps new plans for later compilations and closes cuDNN. NULL: nothing. */
void ls_conv_planner_free(LsConvPlanner *p);

/* Why workspace sizes are estimates: a sentence; NULL when they are exact. */
const char *ls_conv_planner_estimates(const LsConvPlanner *p);
int64_t ls_conv_planner_version(const LsConvPlanner *p);        /* of cuDNN, 91900; 0: none */
const LsConvWishes *ls_conv_planner_wishes(const LsConvPlanner *p);

/* CONV, CONV_DX or CONV_DW as cuDNN sees it. False where it has no such convolution: then *why is a
 * sentence. */
bool ls_conv_of_node(const LsGraph *g, LsNodeId n, int real_bytes, LsDnnConv *c, const char **why);

/* The choice without cuDNN: the workspace that its engines take on most shapes. */
void ls_conv_estimate(const LsGraph *g, LsNodeId n, int real_bytes, const LsConvWishes *w,
                      LsConvChoice *to);

/* What serves node n; equal convolutions get the same choice. Never NULL. */
const LsConvChoice *ls_conv_choose(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes);

/* Whether an engine does data gradient n with the gradient of the ReLU whose result is its x. */
bool ls_conv_takes_mask(LsConvPlanner *p, const LsGraph *g, LsNodeId n, int real_bytes);

#endif
