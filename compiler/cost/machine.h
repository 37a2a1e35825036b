/* compiler/cost/machine.h -- a machine's speeds: the figures of the cost model (roofline.h), as
 * text that people read and write.
 *
 *   lowerset-machine 1
 *   name     l4
 *   what     NVIDIA L4 24 GB        # for people
 *   kind     gpu                    # cpu, gpu
 *   threads  2                      # cpu: threads used when measuring
 *   peak     f32=30300 tf32=60000   # operations per ns; also f16 bf16 f64. cpu: bf16 where
 * products of bfloat16 # have a speed of their own, as by x86's VDPBF16PS memory   300 # bytes per
 * ns cache    50331648 3             # bytes; its speed as a multiple of the memory's lanes    8 #
 * floats per vector: products are padded to it overlap  1                      # part of the
 * shorter of compute and transfer time that the longer # hides: 1 all of it; 0 none, the sum counts
 *   step     20000                  # ns of a training step outside its kernels
 *   context  400e6                  # gpu: bytes that driver and libraries take
 *   probe.product 362               # cpu: operations per ns of the short product, and bytes per ns
 * of the probe.pass    114               # short pass, by which another computer is compared with
 * this machine class    conv 0.7 0.8 0.8 3000  # a kind of kernel: share of the peak, shares of the
 * memory's # speed when reading and writing, ns of every launch; a # share of "-" costs nothing A
 * class that is not listed has the figures of its parent: conv.dx those of conv, conv those of
 * `other`, which must be there. Kernels that read or write 16 bits have classes of their own, as
 * conv.dx.bf16 and conv.dx.f16: the parent of the first is conv.dx, of the second conv.dx.bf16.
 * Lines may come in any order; # begins a comment. */
#ifndef LS_COMPILER_COST_MACHINE_H
#define LS_COMPILER_COST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Kinds of kernels that differ in speed: C(id, name, parent). A parent comes before its
 * children. */
#define LS_COST_CLASSES(C)                                                                         \
    C(OTHER, "other", OTHER)                                                                       \
    C(CONV, "conv", OTHER)                      /* forward, and the transposed convolution */      \
    C(CONV_FEW, "conv.few", CONV)               /* fewer positions than pay for packed weights */  \
    C(CONV_WINOGRAD, "conv.winograd", CONV)                                                        \
    C(CONV_DEPTHWISE, "conv.depthwise", CONV)                                                      \
    C(CONV_DX, "conv.dx", CONV)                 /* data gradient */                                \
    C(CONV_DX_FEW, "conv.dx.few", CONV_FEW)                                                        \
    C(CONV_DX_WINOGRAD, "conv.dx.winograd", CONV_WINOGRAD)                                         \
    C(CONV_DX_DEPTHWISE, "conv.dx.depthwise", CONV_DEPTHWISE)                                      \
    C(CONV_DW, "conv.dw", CONV)                 /* weight gradient */                              \
    C(CONV_DW_WINOGRAD, "conv.dw.winograd", CONV_DW)                                               \
    C(CONV_DW_DEPTHWISE, "conv.dw.depthwise", CONV_DW)                                             \
    C(MATMUL, "matmul", OTHER)                                                                     \
    C(MATMUL_TURNED, "matmul.turned", MATMUL)   /* A transposed: the weight gradient */            \
    C(MATMUL_THIN, "matmul.thin", MATMUL)       /* at most 32 rows or columns */                   \
    C(MATMUL_OUTER, "matmul.outer", MATMUL_THIN)        /* sums of at most 32 terms */             \
    C(MATMUL_BATCH, "matmul.batch", MATMUL)     /* many small ones */                              \
    C(APPLY, "apply", MATMUL_OUTER)             /* updates that compute their gradient */          \
    C(ATTENTION, "attention", MATMUL_BATCH)                                                        \
    C(ATTENTION_GRAD, "attention.grad", ATTENTION)                                                 \
    C(MAP, "map", OTHER)                        /* pointwise, fused or alone */                    \
    C(MAP_MATH, "map.math", MAP)                /* with exp, log, erf and the like */              \
    C(PACKING, "packing", MAP_MATH)             /* of operands computed while packing */        \
    C(REDUCE, "reduce", MAP)                    /* with sums over axes */                          \
    C(UPDATE, "update", MAP)                    /* optimizers, running statistics */               \
    C(CONCAT, "concat", OTHER)                                                                     \
    C(SLICE, "slice", CONCAT)                                                                      \
    C(TRANSPOSE, "transpose", CONCAT)           /* axes or layout */                               \
    C(PAD, "pad", CONCAT)                       /* also tile, and gradients of slice and pad */    \
    C(GATHER, "gather", OTHER)                                                                     \
    C(GATHER_GRAD, "gather.grad", GATHER)                                                          \
    C(SCAN, "scan", GATHER)                     /* scans, largest elements: by lines */            \
    C(RESIZE, "resize", OTHER)                                                                     \
    C(RESIZE_GRAD, "resize.grad", RESIZE)                                                          \
    C(SAMPLE, "sample", GATHER)                 /* images at computed places */                    \
    C(SAMPLE_GRAD, "sample.grad", SAMPLE)                                                          \
    C(POOL, "pool", OTHER)                                                                         \
    C(POOL_GRAD, "pool.grad", POOL)                                                                \
    C(SOFTMAX, "softmax", OTHER)                                                                   \
    C(SOFTMAX_GRAD, "softmax.grad", SOFTMAX)                                                       \
    C(NORM, "norm", OTHER)                      /* layer norm */                                   \
    C(NORM_GRAD, "norm.grad", NORM)                                                                \
    C(LOSS, "loss", OTHER)                                                                         \
    C(LOSS_GRAD, "loss.grad", LOSS)

#define LS_COST_ID(id, name, parent) LS_COST_##id,
/* Class k + LS_COST_BF16 has the kernels of class k in bfloat16, k + LS_COST_F16 those in
 * float16. */
typedef enum {
    LS_COST_CLASSES(LS_COST_ID)
    LS_COST_BF16,
    LS_COST_F16 = 2 * LS_COST_BF16,
    LS_NCOSTS = 3 * LS_COST_BF16
} LsCostClass;
#undef LS_COST_ID
typedef struct LsCostName { const char *name; LsCostClass parent; } LsCostName;
extern const LsCostName ls_cost_class[LS_NCOSTS];

typedef enum { LS_PEAK_F32, LS_PEAK_TF32, LS_PEAK_F16, LS_PEAK_BF16, LS_PEAK_F64, LS_NPEAKS }
    LsPeak;

typedef struct LsClassCost {
    double compute;             /* share of the peak for f32, in 16 bits perhaps more than 1; 0:
                                 * operations are free */
    double read, write;         /* shares of the memory's speed; 0: bytes are free */
    double launch;              /* ns of every launch */
} LsClassCost;

typedef struct LsMachine {
    char name[32], what[128];
    bool gpu;
    int threads;                /* 0: not said */
    int lanes;
    double peak[LS_NPEAKS];     /* operations per ns; 0: no such unit */
    double memory;              /* bytes per ns */
    double cache, near;         /* bytes; its speed as a multiple of the memory's */
    double overlap;             /* 0 .. 1 */
    double step;                /* ns */
    double context;             /* bytes of driver and libraries on a GPU */
    double probe_product, probe_pass;   /* per ns; 0: not known */
    LsClassCost cost[LS_NCOSTS];
} LsMachine;

/* The machine as seen by products that reach another peak, if it has one. */
LsMachine ls_machine_with_peak(const LsMachine *m, LsPeak peak);

/* CPU: the machine with another number of threads. Twice the threads compute 1.89 times as fast,
 * and move bytes 1.52 times as fast: the five networks of `bench predict` on one and two cores. */
LsMachine ls_machine_with_threads(const LsMachine *m, int threads);

/* CPU: the speed of direct products of bfloat16 relative to those of f32: as direct convolutions
 * were measured in both, else by the peaks; 0: not known. */
double ls_machine_dot_rate(const LsMachine *m);

/* Reads the text form. False with a sentence in err: "FILE:3: ..."; *m is then undefined. */
bool ls_machine_parse(LsMachine *m, const char *text, const char *file, char *err, size_t size);
/* The same from a file of at most 64 KiB. */
bool ls_machine_load(LsMachine *m, const char *path, char *err, size_t size);
/* Writes the text form, figures to 6 digits. note: a comment for the head, or NULL. */
void ls_machine_write(FILE *to, const LsMachine *m, const char *note);

/* The built-in machines in text form: k from 0, NULL at the end. */
const char *ls_machine_builtin(size_t k);
/* Finds a built-in machine by name; false: no such machine. "cpu" always exists: it is the default
 * when no calibration is known. */
bool ls_machine_find(LsMachine *m, const char *name);

#endif
