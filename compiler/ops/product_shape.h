/* compiler/ops/product_shape.h -- what products make, whether it is stored or only its norms
 * are. */
#ifndef LS_COMPILER_OPS_PRODUCT_SHAPE_H
#define LS_COMPILER_OPS_PRODUCT_SHAPE_H

#include "compiler/ir/graph.h"

/* The weight gradient [M,C/group,K..] that a CONV_DW or CONV_DW_SQUARES makes: of all images
 * together, or of each alone. */
LsShape ls_conv_weight_shape(const LsGraph *g, LsNodeId n);
/* Whether it makes one of each image. */
bool ls_conv_weights_each(const LsNode *node);

/* The matrices [..,M,N] that a MATMUL or MATMUL_SQUARES makes. */
LsShape ls_matmul_shape(const LsGraph *g, LsNodeId n);

#endif
