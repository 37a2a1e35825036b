/* compiler/adapters/adapters.h -- low-rank adapters as a change of a model file: the nodes and
 * tensors that they add, what is trained, and where each tensor goes in peft's files. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTERS_H
#define LS_COMPILER_ADAPTERS_ADAPTERS_H

#include "base/name_ids.h"
#include "compiler/adapters/adapted.h"
#include "compiler/adapters/adapter_spec.h"

/* A tensor of peft's adapter file. */
typedef struct LsAdapterTensor {
    const char *name, *key;             /* in the model; in that file */
    const float **further;              /* initial values of an ensemble's members 1, 2, ...; NULL:
                                         * those of member 0 */
} LsAdapterTensor;

typedef struct LsAdapters {
    const LsAdapterSpec *spec;
    const LsAdapterSpec **further; uint32_t nfurther;   /* those of an ensemble's members 1, 2, ...,
                                                         * alike but for initial values; 0: all
                                                         * members begin alike */
    /* set by ls_adapt: */
    LsNames trained;                    /* tensors that are trained, and no others */
    LsAdapterTensor *tensor; uint32_t ntensor, cap_tensor;
    LsAdapted *adapted; uint32_t nadapted, cap_adapted;
    const char *config;                 /* adapter_config.json */
    struct LsAdapterChange *change; uint32_t nchange, cap_change;
    LsNames made;                       /* results of the nodes that were added */
    bool merge;                         /* --merge: the evaluation form has no adapters */
} LsAdapters;

LsAdapters *ls_adapters_new(LsArena *a, const LsAdapterSpec *spec);

/* Whether no gradient flows through that value: the norms of DoRA. */
bool ls_adapters_stop(const LsAdapters *a, const char *value);
/* Whether the tensor is one of the adapters' own, not of the file. */
bool ls_adapters_made(const LsAdapters *a, const char *tensor);
/* The row of that tensor; NULL: it is none of peft's file. */
const LsAdapterTensor *ls_adapters_tensor(const LsAdapters *a, const char *tensor);
/* Whether the tensor is trained. */
bool ls_adapters_train(const LsAdapters *a, const char *tensor);

#endif
