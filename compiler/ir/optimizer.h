/* compiler/ir/optimizer.h -- the table of optimizers: what --optimizer takes, and the text of the
 * update nodes.
 *
 * compiler/ops/optimizers.c has the rows. Help, refusals and kernels are made from them.
 *
 * An update node has operands p, g, the state of its rule, [factor], [acc], [weight], [average],
 * [shared].
 *   average   state: the exponential mean of the parameter (--ema), moved by every update
 *   shared    a scalar that belongs to all parameters, and changes with the number of the update
 * compiler/ir/loss.def has the others, and the steps that all rules share. A rule whose node has a
 * result does not write p: the result is a direction, from which further nodes make the step; 0 at
 * micro-batches that do not update. */
#ifndef LS_COMPILER_IR_OPTIMIZER_H
#define LS_COMPILER_IR_OPTIMIZER_H

#include "compiler/ir/op.h"

/* State of a parameter's shape, zeros at first; but see ls_rule_has_codes. */
typedef struct LsMoment {
    const char *var;            /* in the rule's text; NULL: no more */
    const char *suffix;         /* of its name: "PARAM.suffix" */
    const char *when;           /* the hyperparameter without which (0) there is none; NULL:
                                 * always */
} LsMoment;

/* The text of an update. Both parts are lines of C; `d` is the element's gradient, p[i], m[i] ..
 * are the element and its state. In them
 *   $NAME  is a hyperparameter as a real, $~NAME one minus it, @NAME the same as a double;
 *   a line that begins with ?NAME or !NAME is printed if that hyperparameter is not 0, is 0; NAME
 * may also be the variable of a state, which is there or not. */
enum { LS_MOMENTS = 4 };
typedef struct LsRule {
    LsOpCode op;
    int nstate;
    LsMoment state[LS_MOMENTS];
    const char *part;           /* before the loop: what does not depend on the element, in double;
                                 * may be NULL */
    const char *each;
    bool makes;                 /* a direction, y[i], and does not write p */
    double flops;               /* of an element */
} LsRule;

/* The rule of an op; NULL: its nodes are no updates of parameters. */
const LsRule *ls_rule_of(LsOpCode op);
/* The k-th rule, from 0; NULL at the end. */
const LsRule *ls_rule_at(int k);

/* The rule keeps its moments in blocks of codes (runtime/kernels/ls_codes.h): an element's step
 * needs its whole block. Two tensors of rank 1 are the state of a moment: its codes, in bytes, and
 * the scales of its blocks. Blocks follow the parameter's row-major logical order, whatever its
 * layout. In the text m[j], v[j] are the element's moments. */
static inline bool ls_rule_has_codes(const LsRule *r) { return r->op == LS_OP_ADAM_CODES; }
static inline bool ls_are_codes(int state) { return state % 2 == 0; }
/* Elements of a block of codes with so many bits. */
static inline int64_t ls_code_block(double bits) { return bits == 8 ? 256 : 128; }

/* Where an update node has its operands. */
static inline int ls_rule_factor(const LsRule *r) { return 2 + r->nstate; }
static inline int ls_rule_acc(const LsRule *r) { return 3 + r->nstate; }
static inline int ls_rule_weight(const LsRule *r) { return 4 + r->nstate; }
static inline int ls_rule_average(const LsRule *r) { return 5 + r->nstate; }
static inline int ls_rule_shared(const LsRule *r) { return 6 + r->nstate; }

/* The hyperparameter of that name, of `n` letters; NULL: there is none. */
const double *ls_hyper_find(const LsHyper *h, const char *name, size_t n);

/* ---- what users name ---- */
typedef enum {
    LS_SGD,
    LS_ADAM,
    LS_ADAMW,
    LS_LION,
    LS_RMSPROP,
    LS_ADAGRAD,
    LS_NADAM,
    LS_RADAM,
    LS_LAMB,
    LS_LARS,
    LS_ADAFACTOR,
    LS_MUON,
    LS_FREE_SGD,
    LS_FREE_ADAMW,
    LS_ADAM8,
    LS_ADAM4,
    LS_APOLLO,
    LS_APOLLO_MINI,
    LS_OPT_NONE,
    LS_NOPTIMIZERS
} LsOptimizerKind;

/* at least 0; and below 1; without a value; a whole number of at least 1 */
typedef enum { LS_SET_POSITIVE, LS_SET_PART, LS_SET_FLAG, LS_SET_WHOLE } LsSettingKind;
typedef struct LsSetting {
    const char *name;           /* as users give it; NULL: no more */
    const char *hyper;          /* its name in LsHyper; NULL: the learning rate */
    const char *usual;          /* default, as text */
    LsSettingKind kind;
    const char *needs;          /* the flag without which it has no meaning; NULL: none */
} LsSetting;

enum { LS_SETTINGS = 12 };
typedef struct LsOptimizer {
    const char *name;
    LsOpCode op;
    bool decoupled;             /* always */
    LsSetting setting[LS_SETTINGS];
    const char *formula;        /* for people */
} LsOptimizer;
extern const LsOptimizer ls_optimizer_row[LS_NOPTIMIZERS];

#endif
