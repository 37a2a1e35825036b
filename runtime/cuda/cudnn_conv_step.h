/* runtime/cuda/cudnn_conv_step.h -- a convolution as the program describes it. */
#ifndef LS_CUDNN_CONV_STEP_H
#define LS_CUDNN_CONV_STEP_H

#include "runtime/cuda/cudnn_shape.h"
#include "runtime/ls_run.h"

typedef struct LsCudaConv {
    LsDnnConv conv;
    LsDnnRules rules;           /* compiled: such engines serve only what is more than a
                                 * convolution */
    /* Places among the arguments of the step; -1: none. */
    int arg_x, arg_w, arg_y, arg_bias, arg_mask, arg_workspace;
    int64_t workspace;          /* bytes at arg_workspace: ls_conv_room of what the plan needs */
    const char *plan;           /* cuDNN's text of it; NULL: the compiler had no cuDNN */
    bool alone;                 /* the plan is that of the convolution alone: whether an engine does
                                 * more, which it compiles, shows when the program starts */
    /* A kernel that does the rest of conv in place, where no engine does; NULL: there is no rest. */
    void (*behind)(LsRun *run, void *const arg[]);
    /* A kernel of the program that computes all of it, to be timed beside cuDNN's; NULL: none. */
    void (*own)(LsRun *run, void *const arg[]);
} LsCudaConv;

#endif
