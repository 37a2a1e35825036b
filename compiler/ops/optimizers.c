/* compiler/ops/optimizers.c -- the table of optimizers: see compiler/ir/optimizer.h. */
#include "compiler/ir/optimizer.h"

#include <stddef.h>
#include <string.h>

/* ---- the text of the updates ---- */

static const char rate_part[] = "const real lr = (real)run->lr;";
static const char sgd_each[] =
    "?decay d += $decay * p[i];\n"
    "?rate_first d *= lr;\n"
    "?v const real w = $momentum * v[i] + d;\n"
    "?v v[i] = w;\n"
    "?v?nesterov d += $momentum * w;\n"
    "?v!nesterov d = w;\n"
    "!rate_first p[i] -= lr * d;\n"
    "?rate_first p[i] -= d;";

static const char adam_part[] =
    "!rate_part const double base = run->lr;\n"
    "?rate_part const double base = run->lr * @rate_part;\n"
    "!raw const real rate = (real)(base / (1 - pow(@beta1, (double)run->update)));\n"
    "!raw const real root = (real)(1 / sqrt(1 - pow(@beta2, (double)run->update)));\n"
    "?raw const real rate = (real)base, root = 1;\n"
    "?decoupled?decay const real keep = (real)(1 - base * @decay);";
/* Both of Adam's moments move. */
#define MOMENTS                                                                                    \
    "const real mean = $beta1 * m[i] + $~beta1 * d;\n"                                             \
    "const real square = $beta2 * v[i] + $~beta2 * d * d;\n"                                       \
    "m[i] = mean;\n"                                                                               \
    "v[i] = square;\n"
static const char adam_each[] =
    "!decoupled?decay d += $decay * p[i];\n"
    MOMENTS
    "?decoupled?decay!late p[i] = p[i] * keep - rate * mean / (ls_sqrt(square) * root + $eps);\n"
    "?late p[i] = p[i] - rate * mean / ((ls_sqrt(square) + $eps) * root);\n"
    "?late?decay p[i] *= keep;\n"
    "!decoupled p[i] = p[i] - rate * mean / (ls_sqrt(square) * root + $eps);\n"
    "?decoupled!decay!late p[i] = p[i] - rate * mean / (ls_sqrt(square) * root + $eps);";

/* The moments m, v of a block lie in arrays, by j. The codes are made of what is stored here; the
 * step takes it as it is. */
static const char adam_codes_each[] =
    "const real mean = ls_codes_towards(m[j], d, $~beta1);\n"
    "const real square = ls_codes_towards(v[j], d * d, $~beta2);\n"
    "m[j] = mean;\n"
    "v[j] = square;\n"
    "?decay p[i] = p[i] * keep - rate * mean / (ls_sqrt(square) * root + $eps);\n"
    "!decay p[i] = p[i] - rate * mean / (ls_sqrt(square) * root + $eps);";

/* The sign of a NaN is a NaN: a broken gradient does not stay hidden. */
static const char lion_each[] =
    "const real c = $beta1 * m[i] + $~beta1 * d;\n"
    "m[i] = $beta2 * m[i] + $~beta2 * d;\n"
    "real way = c > 0 ? 1 : c < 0 ? -1 : c;\n"
    "?decay way += $decay * p[i];\n"
    "p[i] -= lr * way;";

/* The variance is at least 0 but for rounding. */
static const char rmsprop_each[] =
    "?decay d += $decay * p[i];\n"
    "real square = $beta2 * v[i] + $~beta2 * d * d;\n"
    "v[i] = square;\n"
    "?h const real mean = $beta2 * h[i] + $~beta2 * d;\n"
    "?h h[i] = mean;\n"
    "?h square = ls_max(square - mean * mean, 0);\n"
    "?inside real step = d / ls_sqrt(square + $eps);\n"
    "!inside real step = d / (ls_sqrt(square) + $eps);\n"
    "?b step += $momentum * b[i];\n"
    "?b b[i] = step;\n"
    "p[i] -= lr * step;";

static const char adagrad_part[] =
    "const real rate = (real)(run->lr / (1 + (double)(run->update - 1) * @lr_decay));";
static const char adagrad_each[] =
    "?decay d += $decay * p[i];\n"
    "const real sum2 = s[i] + d * d;\n"
    "s[i] = sum2;\n"
    "p[i] -= rate * d / (ls_sqrt(sum2 + $initial) + $eps);";

/* shared: the product of the momenta up to this update. */
static const char nadam_part[] =
    "const double product = (double)shared[0], t = (double)run->update;\n"
    "const double now = @beta1 * (1 - 0.5 * pow(0.96, t * @momentum_decay));\n"
    "const double next = @beta1 * (1 - 0.5 * pow(0.96, (t + 1) * @momentum_decay));\n"
    "const real by_grad = (real)(run->lr * (1 - now) / (1 - product));\n"
    "const real by_mean = (real)(run->lr * next / (1 - product * next));\n"
    "const real root = (real)(1 / sqrt(1 - pow(@beta2, t)));\n"
    "?decoupled?decay const real keep = (real)(1 - run->lr * @decay);";
static const char nadam_each[] =
    "!decoupled?decay d += $decay * p[i];\n"
    MOMENTS
    "?decoupled?decay p[i] *= keep;\n"
    "p[i] -= (by_grad * d + by_mean * mean) / (ls_sqrt(square) * root + $eps);";

/* Until the variance of the second moment can be told, the step is that of momentum. */
static const char radam_part[] =
    "const double power = pow(@beta2, (double)run->update), most = 2 / (1 - @beta2) - 1;\n"
    "const double length = most - 2 * (double)run->update * power / (1 - power);\n"
    "const bool tells = length > 5;\n"
    "const double part_of = tells ? sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most "
    "- 2) * length)) : 1;\n"
    "const double root = tells ? sqrt(1 - power) : 1;\n"
    "const real rate = (real)(run->lr / (1 - pow(@beta1, (double)run->update)) * part_of * root);\n"
    "?decoupled?decay const real keep = (real)(1 - run->lr * @decay);";
static const char radam_each[] =
    "!decoupled?decay d += $decay * p[i];\n"
    MOMENTS
    "?decoupled?decay p[i] *= keep;\n"
    "p[i] -= tells ? rate * mean / (ls_sqrt(square) + $eps) : rate * mean;";

/* The direction of LAMB: Adam's, and the decay's. */
static const char lamb_part[] =
    "const real rate = (real)(1 / (1 - pow(@beta1, (double)run->update)));\n"
    "const real root = (real)(1 / sqrt(1 - pow(@beta2, (double)run->update)));";
static const char lamb_each[] =
    MOMENTS
    "real way = rate * mean / (ls_sqrt(square) * root + $eps);\n"
    "?decay way += $decay * p[i];\n"
    "y[i] = way;";

/* The gradient as it is, and the decay's. */
static const char plain_each[] =
    "?decay d += $decay * p[i];\n"
    "y[i] = d;";

/* The direction of Adam before its moments are corrected. */
static const char raw_adam_each[] =
    MOMENTS
    "y[i] = mean / (ls_sqrt(square) + $eps);";

/* A step along a direction that is made already. */
static const char step_part[] =
    "!relative!corrects const double base = run->lr;\n"
    "?corrects const double base = run->lr * sqrt(1 - pow(@beta2, (double)run->update))"
    " / (1 - pow(@beta1, (double)run->update));\n"
    "?relative const double base = fmin(run->lr, 1 / sqrt((double)run->update));\n"
    "!rate_part const real lr = (real)base;\n"
    "?rate_part const real lr = (real)(base * @rate_part);\n"
    "?decay const real keep = (real)(1 - run->lr * @decay);";
static const char step_each[] =
    "?decay!late p[i] *= keep;\n"
    "p[i] -= lr * d;\n"
    "?decay?late p[i] *= keep;";

/* The direction of Muon before it is made orthogonal. */
static const char muon_each[] =
    "const real mean = $momentum * m[i] + $~momentum * d;\n"
    "m[i] = mean;\n"
    "y[i] = $~momentum * d + $momentum * mean;";

/* Schedule-free: p is the point of the gradient, between z, which descends, and the average of all
 * z. shared: the part of this update in the average. Before the first update all three are
 * equal. */
#define FREE_PART                                                                                  \
    "const real lr = (real)run->lr, share = shared[0];\n"                                          \
    "const bool begins = run->update == 1;"
#define FREE_EACH                                                                                  \
    "?decay d += $decay * p[i];\n"                                                                 \
    "const real to = (begins ? p[i] : z[i]) - lr * d, from = average[i];\n"                        \
    "const real mean = from + share * (to - from);\n"                                              \
    "z[i] = to;\n"                                                                                 \
    "average[i] = mean;\n"                                                                         \
    "p[i] = mean + $~beta1 * (to - mean);"
static const char free_part[] = FREE_PART;
static const char free_each[] = FREE_EACH;
static const char free_adamw_part[] =
    FREE_PART "\n"
    "const real root = (real)(1 / sqrt(1 - pow(@beta2, (double)run->update)));";
static const char free_adamw_each[] =
    "const real square = $beta2 * v[i] + $~beta2 * d * d;\n"
    "v[i] = square;\n"
    "d = d / (ls_sqrt(square) * root + $eps);\n"
    FREE_EACH;

static const LsRule rule[] = {
    {LS_OP_SGD, 1, {{"v", "momentum", "momentum"}}, rate_part, sgd_each, false, 6},
    {LS_OP_ADAM, 2, {{"m", "m", NULL}, {"v", "v", NULL}}, adam_part, adam_each, false, 16},
    {LS_OP_ADAM_CODES,
     4,
     {{"m_codes", "m", NULL},
      {"m_scales", "m_scale", NULL},
      {"v_codes", "v", NULL},
      {"v_scales", "v_scale", NULL}},
     adam_part,
     adam_codes_each,
     false,
     60},
    {LS_OP_LION, 1, {{"m", "m", NULL}}, rate_part, lion_each, false, 12},
    {LS_OP_RMSPROP,
     3,
     {{"v", "v", NULL}, {"b", "momentum", "momentum"}, {"h", "mean", "centered"}},
     rate_part,
     rmsprop_each,
     false,
     16},
    {LS_OP_ADAGRAD, 1, {{"s", "sum", NULL}}, adagrad_part, adagrad_each, false, 12},
    {LS_OP_NADAM, 2, {{"m", "m", NULL}, {"v", "v", NULL}}, nadam_part, nadam_each, false, 18},
    {LS_OP_RADAM, 2, {{"m", "m", NULL}, {"v", "v", NULL}}, radam_part, radam_each, false, 16},
    {LS_OP_LAMB, 2, {{"m", "m", NULL}, {"v", "v", NULL}}, lamb_part, lamb_each, true, 18},
    {LS_OP_RAW_ADAM, 2, {{"m", "m", NULL}, {"v", "v", NULL}}, NULL, raw_adam_each, true, 12},
    {LS_OP_FREE_SGD, 1, {{"z", "z", NULL}}, free_part, free_each, false, 10},
    {LS_OP_FREE_ADAMW,
     2,
     {{"z", "z", NULL}, {"v", "v", NULL}},
     free_adamw_part,
     free_adamw_each,
     false,
     20},
    {LS_OP_STEP, 0, {{NULL, NULL, NULL}}, step_part, step_each, false, 3},
    {LS_OP_MUON, 1, {{"m", "momentum", NULL}}, NULL, muon_each, true, 6},
    {LS_OP_DIRECTION, 0, {{NULL, NULL, NULL}}, NULL, plain_each, true, 3},
};
enum { NRULES = sizeof rule / sizeof *rule };

const LsRule *ls_rule_at(int k) { return k < NRULES ? &rule[k] : NULL; }

const LsRule *ls_rule_of(LsOpCode op)
{
    for (int k = 0; k < NRULES; k++)
        if (rule[k].op == op)
            return &rule[k];
    return NULL;
}

/* ---- names ---- */

const double *ls_hyper_find(const LsHyper *h, const char *name, size_t n)
{
    static const struct { const char *name; size_t at; } field[] = {
#define LS_HYPER(name) {#name, offsetof(LsHyper, name)},
#include "compiler/ir/hyper.def"
#undef LS_HYPER
    };
    for (size_t k = 0; k < sizeof field / sizeof *field; k++)
        if (strlen(field[k].name) == n && memcmp(field[k].name, name, n) == 0)
            return (const double *)(const void *)((const char *)h + field[k].at);
    return NULL;
}

#define WD(usual) {"wd", "decay", usual, LS_SET_POSITIVE, NULL}
#define LR(usual) {"lr", NULL, usual, LS_SET_POSITIVE, NULL}
#define BETA1(usual) {"beta1", "beta1", usual, LS_SET_PART, NULL}
#define BETA2(usual) {"beta2", "beta2", usual, LS_SET_PART, NULL}
#define EPS(usual) {"eps", "eps", usual, LS_SET_POSITIVE, NULL}
#define MOMENTUM(usual) {"momentum", "momentum", usual, LS_SET_PART, NULL}
#define FLAG(name, hyper) {name, hyper, NULL, LS_SET_FLAG, NULL}
#define BF16 FLAG("bf16", "bf16")
#define RANK(usual) {"rank", "rank", usual, LS_SET_WHOLE, NULL}
#define SCALE(usual) {"scale", "scale", usual, LS_SET_POSITIVE, NULL}
#define LOW_RANK {"gap", "gap", "200", LS_SET_WHOLE, NULL}, \
                 {"growth", "growth", "1.01", LS_SET_POSITIVE, NULL}, \
                 BETA1("0.9"), BETA2("0.999"), EPS("1e-6"), WD("0"), LR("1e-3"), \
                 FLAG("front", "front"), FLAG("raw", "raw")

const LsOptimizer ls_optimizer_row[LS_NOPTIMIZERS] = {
    [LS_SGD] = {"sgd",
                LS_OP_SGD,
                false,
                {MOMENTUM("0"), WD("0"), LR("0.01"), FLAG("nesterov", "nesterov"), BF16},
                "g += wd p; v = momentum v + g; p -= lr v"},
    [LS_ADAM] = {"adam",
                 LS_OP_ADAM,
                 false,
                 {BETA1("0.9"), BETA2("0.999"), EPS("1e-8"), WD("0"), LR("1e-3"), BF16},
                 "g += wd p; p -= lr m' / (sqrt(v') + eps)"},
    [LS_ADAMW] = {"adamw",
                  LS_OP_ADAM,
                  true,
                  {BETA1("0.9"), BETA2("0.999"), EPS("1e-8"), WD("0.01"), LR("1e-3"), BF16},
                  "p -= lr wd p; p -= lr m' / (sqrt(v') + eps)"},
    [LS_LION] = {"lion",
                 LS_OP_LION,
                 false,
                 {BETA1("0.9"), BETA2("0.99"), WD("0"), LR("1e-4"), BF16},
                 "p -= lr (sign(beta1 m + (1 - beta1) g) + wd p); m = beta2 m + (1 - beta2) g"},
    [LS_RMSPROP] =
        {"rmsprop",
         LS_OP_RMSPROP,
         false,
         {{"alpha", "beta2", "0.99", LS_SET_PART, NULL},
          EPS("1e-8"),
          MOMENTUM("0"),
          WD("0"),
          LR("0.01"),
          FLAG("centered", "centered"),
          FLAG("inside", "inside")},
         "p -= lr g / (sqrt(v) + eps), v = alpha v + (1 - alpha) g^2; inside: sqrt(v + eps)"},
    [LS_ADAGRAD] = {"adagrad",
                    LS_OP_ADAGRAD,
                    false,
                    {{"lr_decay", "lr_decay", "0", LS_SET_POSITIVE, NULL},
                     {"initial", "initial", "0", LS_SET_POSITIVE, NULL},
                     EPS("1e-10"),
                     WD("0"),
                     LR("0.01")},
                    "s += g^2; p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s + initial) + eps)"},
    [LS_NADAM] = {"nadam",
                  LS_OP_NADAM,
                  false,
                  {BETA1("0.9"),
                   BETA2("0.999"),
                   EPS("1e-8"),
                   {"momentum_decay", "momentum_decay", "0.004", LS_SET_POSITIVE, NULL},
                   WD("0"),
                   LR("2e-3"),
                   FLAG("decoupled", "decoupled")},
                  "Adam whose mean looks ahead: momentum beta1 (1 - 0.96^(t momentum_decay) / 2)"},
    [LS_RADAM] = {"radam",
                  LS_OP_RADAM,
                  false,
                  {BETA1("0.9"), BETA2("0.999"), EPS("1e-8"), WD("0"), LR("1e-3"),
                   FLAG("decoupled", "decoupled")},
                  "Adam, rectified; without sqrt(v) until the variance of v can be told"},
    [LS_LAMB] = {"lamb",
                 LS_OP_LAMB,
                 false,
                 {BETA1("0.9"),
                  BETA2("0.999"),
                  EPS("1e-6"),
                  WD("0"),
                  LR("1e-3"),
                  FLAG("apex", "apex"),
                  {"clip", "max_norm", "1", LS_SET_POSITIVE, "apex"},
                  {"nvlamb", "everywhere", NULL, LS_SET_FLAG, "apex"}},
                 "u = m' / (sqrt(v') + eps) + wd p; p -= lr |p| / |u| u. As in optax; apex: also "
                 "clips gradients to `clip`; parameters without decay get ratio 1 unless nvlamb"},
    [LS_LARS] = {"lars",
                 LS_OP_DIRECTION,
                 false,
                 {MOMENTUM("0.9"),
                  {"trust", "trust", "0.001", LS_SET_POSITIVE, NULL},
                  EPS("0"),
                  WD("0"),
                  LR("0.1"),
                  FLAG("nesterov", "nesterov")},
                 "u = g + wd p; v = momentum v + lr trust |p| / (|u| + eps) u; p -= v. optax's"},
    [LS_ADAFACTOR] =
        {"adafactor",
         LS_OP_DIRECTION,
         false,
         {{"decay_rate", "power", "0.8", LS_SET_POSITIVE, NULL},
          {"eps1", "floor", "1.1920929e-07", LS_SET_POSITIVE, NULL},
          {"eps2", "floor_p", "1e-3", LS_SET_POSITIVE, NULL},
          {"d", "most", "1", LS_SET_POSITIVE, NULL},
          WD("0"),
          LR("0.01")},
         "u = g / sqrt(V), V from the means of g^2 over rows and columns (the last two axes; of "
         "vectors: V as "
         "Adam's); p -= max(eps2, rms(p)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / d)"},
    [LS_MUON] = {"muon",
                 LS_OP_MUON,
                 false,
                 {{"momentum", "momentum", "0.95", LS_SET_PART, NULL},
                  WD("0.1"),
                  LR("0.02"),
                  {"adam_lr", "rate_part", "1e-3", LS_SET_POSITIVE, NULL},
                  BETA1("0.9"),
                  BETA2("0.999"),
                  EPS("1e-8"),
                  {"adam_wd", "rest_decay", "0", LS_SET_POSITIVE, NULL}},
                 "matrices: u = (1 - momentum) g + momentum B, made orthogonal by 5 rounds of "
                 "Newton and Schulz; p -= lr "
                 "sqrt(max(1, rows / columns)) u. Other shapes: adamw with the rate adam_lr"},
    [LS_FREE_SGD] = {"schedule-free-sgd",
                     LS_OP_FREE_SGD,
                     false,
                     {{"beta", "beta1", "0.9", LS_SET_PART, NULL},
                      WD("0"),
                      LR("1"),
                      {"r", "by_time", "0", LS_SET_POSITIVE, NULL},
                      {"power", "by_rate", "2", LS_SET_POSITIVE, NULL}},
                     "z -= lr (g + wd p); x = (1 - c) x + c z; p = (1 - beta) z + beta x, where "
                     "the gradient is; c: this update's "
                     "part of the sum of t^r (largest lr)^power. x is evaluated and exported"},
    [LS_FREE_ADAMW] = {"schedule-free-adamw",
                       LS_OP_FREE_ADAMW,
                       false,
                       {BETA1("0.9"),
                        BETA2("0.999"),
                        EPS("1e-8"),
                        WD("0"),
                        LR("2.5e-3"),
                        {"r", "by_time", "0", LS_SET_POSITIVE, NULL},
                        {"power", "by_rate", "2", LS_SET_POSITIVE, NULL}},
                       "the same with z -= lr (g / (sqrt(v') + eps) + wd p), beta = beta1"},
    [LS_ADAM8] = {"adam8",
                  LS_OP_ADAM,
                  true,
                  {BETA1("0.9"), BETA2("0.999"), EPS("1e-8"), WD("0.01"), LR("1e-3")},
                  "adamw with m and v in 8 bits, a scale for each 256 elements, as torchao's "
                  "AdamW8bit; in f32 where a tensor has fewer than 4096 elements or is no multiple "
                  "of 256"},
    [LS_ADAM4] = {"adam4",
                  LS_OP_ADAM,
                  true,
                  {BETA1("0.9"), BETA2("0.999"), EPS("1e-8"), WD("0.01"), LR("1e-3")},
                  "the same with 4 bits, and a scale for each 128 elements"},
    [LS_APOLLO] = {"apollo",
                   LS_OP_DIRECTION,
                   false,
                   {RANK("256"), SCALE("1"), LOW_RANK, FLAG("tensor", "tensor")},
                   "matrices: u = s g, s the ratio of norms of each row (of each column, if there "
                   "are more of them) between Adam's step for R and R, R = P g of `rank` rows or "
                   "columns, P random and new after every `gap` updates; p -= lr sqrt(scale) u, "
                   "whose norm grows by at most `growth`; p -= lr wd p. Other shapes: adamw. As in "
                   "apollo-torch"},
    [LS_APOLLO_MINI] = {"apollo-mini",
                        LS_OP_DIRECTION,
                        false,
                        {RANK("1"), SCALE("128"), LOW_RANK},
                        "apollo:tensor, with one ratio for the whole matrix"},
    [LS_OPT_NONE] =
        {"none", LS_OP_NOP, false, {{NULL, NULL, NULL, LS_SET_FLAG, NULL}}, "no update"},
};
