/* tests/support/precision_nets.h -- the networks of tests of mixed precision. */
#ifndef LS_TESTS_SUPPORT_PRECISION_NETS_H
#define LS_TESTS_SUPPORT_PRECISION_NETS_H

#include "tests/support/command_line.h"

/* Writes gpt.onnx, res.onnx and mlp.onnx. */
static inline void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=16 --vocab=33 "
                  "--dropout=0.1 -o gpt.onnx");
    MUST(LS_BUILD
         "/lowerset model resnet18 --stem=cifar --width=2 --classes=4 --size=8 -o res.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o mlp.onnx");
}

#endif
