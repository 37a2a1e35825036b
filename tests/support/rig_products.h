/* tests/support/rig_products.h -- what kernels of convolutions and products include, as one
 * header. */
#ifndef LS_TESTS_SUPPORT_RIG_PRODUCTS_H
#define LS_TESTS_SUPPORT_RIG_PRODUCTS_H

#include "runtime/kernels/ls_kernel.h"
#include "runtime/kernels/ls_attention16.h"
#include "runtime/kernels/ls_conv.h"
#include "runtime/kernels/ls_matmul.h"
#endif
