/* codegen/kernels/conv_geometry.h -- which elements a convolution multiplies: the contents of the
 * LsConv that a kernel is given (runtime/kernels/ls_conv.h), and the algorithm that is fastest for
 * them. */
#ifndef LS_CODEGEN_KERNELS_CONV_GEOMETRY_H
#define LS_CODEGEN_KERNELS_CONV_GEOMETRY_H

#include "codegen/emit/kernel_emit.h"
#include "runtime/kernels/ls_kernel_sizes.h"

typedef struct LsConvGeo {
    int n;                      /* spatial axes */
    LsAxis ax[LS_MAX_SPATIAL];  /* the first n; LsConv has them at the end */
    int64_t images, group, cin, cout, run, splits, chunk, packed;
    int64_t before, all, from, to, image;
    bool back, dot16;
} LsConvGeo;

/* Whether n is a weight gradient, or norms of one. */
bool ls_geo_has_weights(const LsGraph *g, LsNodeId n);

/* The number of phases of a CONV (one) or CONV_DX, and the geometry of one. */
int64_t ls_geo_phases(const LsGraph *g, LsNodeId n);
LsConvGeo ls_geo_of_phase(const LsGraph *g, LsNodeId n, int64_t phase);

/* That of a weight gradient, or of a part of its sum. direct_rate: speed of the direct product's
 * multiplications relative to Winograd's, which are in f32; infinity: no Winograd. */
LsConvGeo ls_geo_of_weights(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate);

/* Elements that are summed up for one of the result; positions of the result, of all images. */
int64_t ls_geo_depth(const LsConvGeo *d);
int64_t ls_geo_positions(const LsConvGeo *d);
/* Tiles of Winograd's algorithm, of all images. */
int64_t ls_geo_wino_tiles(const LsConvGeo *d);

/* Whether there is one channel per group, and at most LS_TAPS taps along the last axis. */
bool ls_geo_is_depthwise(const LsConvGeo *d);

/* The algorithm for one phase; for all phases of a CONV or CONV_DX, which go one way. */
LsCostWay ls_geo_way(const LsConvGeo *d, int real_bytes, double direct_rate);
LsCostWay ls_geo_node_way(const LsGraph *g, LsNodeId n, int real_bytes, double direct_rate);

/* Elements of workspace for the weights of phase d. */
int64_t ls_geo_weights_size(const LsConvGeo *d, LsCostWay way, int real_bytes);

#endif
