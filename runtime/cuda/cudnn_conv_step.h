/* runtime/cuda/cudnn_conv_step.h -- a convolution as the program describes it. */
#ifndef LS_CUDNN_CONV_STEP_H
#define LS_CUDNN_CONV_STEP_H

#include "runtime/cuda/cudnn_shape.h"
#include "runtime/ls_run.h"

typedef struct LsCudaConv {
    LsDnnConv conv;
    LsDnnRules rules;           /* compiled: such engines may only be used for convolutions with an
                                 * epilogue */
    /* Indices among the arguments of the step; -1: absent. */
    int arg_x, arg_w, arg_y, arg_bias, arg_mask, arg_workspace;
    int64_t workspace;          /* bytes at arg_workspace: ls_conv_room of the plan's workspace */
    const char *plan;           /* cuDNN's text of the plan; NULL: the compiler had no cuDNN */
    bool alone;                 /* the plan covers only the convolution; whether a compiling engine
                                 * also covers the epilogue is known when the program starts */
    /* A kernel that does the rest of conv in place, where no engine does; NULL: no rest. */
    void (*behind)(LsRun *run, void *const arg[]);
    /* A kernel of the program that computes all of conv, timed against cuDNN's; NULL: none. */
    void (*own)(LsRun *run, void *const arg[]);
} LsCudaConv;

#endif
