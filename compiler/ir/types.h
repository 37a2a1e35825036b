/* compiler/ir/types.h -- shapes, types and layouts of values. */
#ifndef LS_COMPILER_IR_TYPES_H
#define LS_COMPILER_IR_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_MAX_RANK = 8, LS_MAX_SPATIAL = 3 };

/* Logical shape, in ONNX's order of axes (images are N, C, H, W whatever the layout). Rank 0 is a
 * scalar of one element. All dims > 0, except in constants, where 0 is allowed. */
typedef struct { int rank; int64_t dim[LS_MAX_RANK]; } LsShape;

/* LS_REAL is float, or double when the program is built with --precision=f64. LS_BF16 and LS_F16
 * are reals that are stored in 16 bits: every element is a number of that format. Kernels compute
 * with them as with LS_REAL. Only results of nodes have these types
 * (compiler/passes/mixed_precision.c), and moments of optimizers LS_BF16. LS_U8: bytes with codes,
 * of an optimizer's state alone (compiler/ir/optimizer.h). */
typedef enum { LS_REAL, LS_I64, LS_I32, LS_BOOL, LS_BF16, LS_F16, LS_U8, LS_NTYPES } LsType;
static inline bool ls_is_16(LsType t) { return t == LS_BF16 || t == LS_F16; }
static inline bool ls_is_float(LsType t) { return t == LS_REAL || ls_is_16(t); }

/* How the elements of a value lie in memory. LS_LAST moves axis 1 behind the others: N,C,H,W is
 * stored as N,H,W,C and a convolution weight M,C,R,S as M,R,S,C. Ranks below 3 are always
 * LS_ROW. */
typedef enum { LS_ROW, LS_LAST } LsLayout;

#endif
