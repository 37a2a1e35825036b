/* compiler/adapters/adapter_spec.h -- which modules get low-rank adapters, and of what kind: the
 * meaning of peft (LoraConfig), for --lora and --adapter. */
#ifndef LS_COMPILER_ADAPTERS_ADAPTER_SPEC_H
#define LS_COMPILER_ADAPTERS_ADAPTER_SPEC_H

#include "compiler/ir/diag.h"

/* The biases that are trained beside the adapters: none, all, those of adapted modules. */
typedef enum { LS_ADAPTER_BIAS_NONE, LS_ADAPTER_BIAS_ALL, LS_ADAPTER_BIAS_OWN } LsAdapterBias;

/* A number for the modules that a name names (ls_adapter_names). */
typedef struct LsAdapterPattern { const char *name; double value; } LsAdapterPattern;

typedef struct LsAdapterSpec {
    int64_t rank;               /* r, at least 1 */
    double alpha;
    double dropout;             /* of the adapter's input, 0 to below 1 */
    bool rslora;                /* scale alpha / sqrt(r), not alpha / r */
    bool dora;                  /* weights as magnitude times direction */
    LsAdapterBias bias;
    const char **target; uint32_t ntarget;      /* names or globs; 0: every product but that of the
                                                 * model's output */
    const char *pattern;        /* one regular expression over whole names, in place of target */
    int64_t *layer; uint32_t nlayer;    /* numbers in module names; 0: any */
    LsAdapterPattern *rank_of, *alpha_of; uint32_t nrank_of, nalpha_of;
    const char **save; uint32_t nsave;  /* modules that are trained as they are */
    const char *dir;            /* --adapter: where initial values are; NULL: they are drawn */
    uint64_t seed;              /* of drawn values */
} LsAdapterSpec;

/* --lora: "r=8,alpha=16,dropout=0.05,rslora,dora,bias=none:GLOB,GLOB". NULL after a diagnostic. */
LsAdapterSpec *ls_adapter_option(LsCtx *cx, const char *text);
/* --adapter: adapter_config.json of that folder. NULL after a diagnostic. */
LsAdapterSpec *ls_adapter_config(LsCtx *cx, const char *dir);

/* Of an ensemble: the specs of the members 1, 2, ... of so many. --lora: each draws its values by
 * the seed plus its number. --adapter: a folder for each member, separated by commas, alike but for
 * their values, and *first is that of member 0; or one folder for all, and *further is NULL. False
 * after a diagnostic. */
bool ls_adapter_members(LsCtx *cx, const char *lora, const char *dirs, int64_t members,
                        LsAdapterSpec **first, const LsAdapterSpec ***further);

/* Whether a target names the module: the module's name, its end behind a dot, or a glob over the
 * whole name. */
bool ls_adapter_names(const char *target, const char *module);
/* Rank and scale of a module. */
int64_t ls_adapter_rank(const LsAdapterSpec *s, const char *module);
double ls_adapter_scale(const LsAdapterSpec *s, const char *module);

/* adapter_config.json for these adapters. */
const char *ls_adapter_config_text(LsArena *a, const LsAdapterSpec *s);

#endif
