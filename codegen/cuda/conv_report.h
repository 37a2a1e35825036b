/* codegen/cuda/conv_report.h -- what plan says of a program's convolutions on a GPU. */
#ifndef LS_CODEGEN_CONV_REPORT_H
#define LS_CODEGEN_CONV_REPORT_H

#include "codegen/cuda/conv_plan.h"

#include <stdio.h>

/* One line: how many, by which cuDNN for which device, the largest workspace; another for those that
 * have kernels of our own, with the reason. each: before them one for every convolution. Nothing
 * where g has none. */
void ls_conv_report(FILE *to, LsConvPlanner *p, const LsGraph *g, int real_bytes, bool each);

#endif
