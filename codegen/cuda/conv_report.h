/* codegen/cuda/conv_report.h -- the lines of `plan` about a program's convolutions on a GPU. */
#ifndef LS_CODEGEN_CONV_REPORT_H
#define LS_CODEGEN_CONV_REPORT_H

#include "codegen/cuda/conv_plan.h"

#include <stdio.h>

/* Prints one line: the number of convolutions, the version of cuDNN, the device, the largest
 * workspace; and one for convolutions with generated kernels, with the reason. each: first a line
 * per convolution. Prints nothing if g has none. */
void ls_conv_report(FILE *to, LsConvPlanner *p, const LsGraph *g, int real_bytes, bool each);

#endif
