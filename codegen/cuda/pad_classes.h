/* codegen/cuda/pad_classes.h -- rows of scores that begin at multiples of 16 bytes.
 *
 * Tensor cores need this alignment of every matrix. If the number of classes is no multiple of
 * four, or in 16 bits of eight (GPT-2's 50257), cuBLASLt has only old kernels for the product that
 * makes the scores and for its two gradients, at a third of the speed on an H200. So the scores and
 * their gradient get columns beyond the classes, which no other kernel reads; in the gradient they
 * are 0. If the weights lie class by class, rows of zeros behind them and behind their copy in 16
 * bits make the products as wide. */
#ifndef LS_CODEGEN_CUDA_PAD_CLASSES_H
#define LS_CODEGEN_CUDA_PAD_CLASSES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Widens scores that a product makes and only a cross-entropy reads, and their gradient if only
 * products read it; returns the number of such losses. The last change of the graph: no shape may
 * be inferred after it. LsValue.columns of a widened value is the number of columns that count. */
uint32_t ls_widen_scores(LsGraph *g, const LsTarget *t);

#endif
