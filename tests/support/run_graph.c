/* tests/support/run_graph.c */
#include "tests/support/run_graph.h"

#include "runtime/engine/thread_pool.h"
#include "scheduler/plan/planner.h"
#include "tests/kernel_flags.h"
#include "tests/support/less.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ls_half.h"         /* takes memcpy and integers from the headers above */

/* The program's main is not called here, but it must link with this function. */
int ls_trainer_main(const LsProgram *p, int argc, char **argv)
{
    (void)p, (void)argc, (void)argv;
    return 0;
}

/* Prints the program into DIR: p.c, p.S and p.const. */
static bool print(LsRunGraph *r, const char *dir)
{
    LsCtx *cx = r->cx;
    LsCode code = {.model = "test",
                   .plan_hash = "",
                   .strategy = "none",
                   .loss = "",
                   .optimizer = "",
                   .target = &r->problem->target,
                   .accumulate = 1,
                   .train = {.problem = r->problem, .plan = &r->plan},
                   .addresses = r->addresses};
    const char *const_file = ls_arena_printf(cx->arena, "%s/p.const", dir);
    FILE *c = fopen(ls_arena_printf(cx->arena, "%s/p.c", dir), "w");
    FILE *s = fopen(ls_arena_printf(cx->arena, "%s/p.S", dir), "w");
    bool ok = c != NULL && s != NULL && ls_program_print(cx, &code, c, NULL);
    if (s != NULL)
        ls_program_print_data(s, const_file, const_file, NULL);
    if (c != NULL)
        fclose(c);
    if (s != NULL)
        fclose(s);
    FILE *k = fopen(const_file, "wb");
    ok = ok && k != NULL
         && (r->addresses->nconst == 0
         || fwrite(r->addresses->constant, 1, r->addresses->nconst, k) == r->addresses->nconst);
    if (k != NULL)
        fclose(k);
    return ok;
}

/* Compiles it into DIR/p.so, which finds libc and libm in this process. Without flags as what
 * compiles soonest, and optimised where whole sets are run. */
static bool build(LsRunGraph *r, const char *dir, const char *flags)
{
    const char *usual = tests_do_all() ? "-O1" : "-O0";
    return system(ls_arena_printf(r->cx->arena,
                                  "cc " LS_KERNEL_FLAGS " %s -shared -nostdlib -I" LS_PRECOMPILED
                                  " -I%s "
                                  "%s/p.c %s/p.S -o %s/p.so -lgcc",
                                  flags != NULL ? flags : usual, LS_SOURCE, dir, dir, dir))
           == 0;
}

static int64_t input_bytes(const LsRunGraph *r, uint32_t k)
{
    return ls_value_bytes(r->g, r->g->input[k], r->problem->target.real_bytes);
}

/* State belongs to the training graph, whose values have other numbers in an evaluation form. */
static void set_state(LsRunGraph *r)
{
    LsRunGraph of = *r;
    for (uint32_t k = 0; k < r->addresses->nstate; k++) {
        const LsStateSlot *s = &r->addresses->state[k];
        const float *data = s->g->value[s->v.i].data;
        of.g = s->g;
        for (int64_t i = 0; data != NULL && i < ls_count(ls_shape(s->g, s->v)); i++)
            ls_run_graph_set(&of, s->v, i, data[i]);
    }
}

void ls_run_graph_open(LsRunGraph *r)
{
    r->arena = aligned_alloc(64, (size_t)(r->plan.arena + 127) / 64 * 64);
    r->state = aligned_alloc(64, (size_t)(r->addresses->state_bytes + 127) / 64 * 64);
    memset(r->arena, 0xff, (size_t)r->plan.arena);      /* NaN: nothing may be
                                                         * read before it is made */
    memset(r->state, 0, (size_t)r->addresses->state_bytes);
    r->input = ls_arena_alloc(r->cx->arena, r->g->ninput, sizeof *r->input);
    for (uint32_t k = 0; k < r->g->ninput; k++)
        r->input[k] = ls_arena_alloc(r->cx->arena, (size_t)input_bytes(r, k) + 64, 1);
    r->run = (LsRun){.valid = r->g->batch,
                     .first = true,
                     .apply = true,
                     .share = 1,
                     .lr = 0.01,
                     .update = 1,
                     .pool = ls_pool_create(1)};
    set_state(r);
}

static bool load(LsRunGraph *r, const char *dir)
{
    r->handle = dlopen(ls_arena_printf(r->cx->arena, "%s/p.so", dir), RTLD_NOW | RTLD_LOCAL);
    if (r->handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    r->program = dlsym(r->handle, "ls_program");
    ls_run_graph_open(r);
    return true;
}

LsRunGraph *ls_run_graph_plan(LsCtx *cx, LsProblem *problem, const LsPlan *plan,
                              const char *flags)
{
    LsRunGraph *r = ls_arena_alloc(cx->arena, 1, sizeof *r);
    char dir[] = "/tmp/ls-run-XXXXXX";
    *r = (LsRunGraph){.cx = cx, .g = problem->g, .problem = problem, .plan = *plan};
    r->addresses = ls_addresses_new(cx, r->g, problem->target.real_bytes, NULL, false);
    if (mkdtemp(dir) == NULL)
        return NULL;
    bool ok = print(r, dir) && build(r, dir, flags) && load(r, dir);
    if (system(ls_arena_printf(cx->arena, "rm -rf %s", dir)) != 0 || !ok)
        return NULL;
    return r;
}

bool ls_run_graph_prints(LsCtx *cx, const LsGraph *g, int real_bytes)
{
    const LsTarget target = ls_target_cpu(real_bytes);
    char dir[] = "/tmp/ls-run-XXXXXX";
    LsRunGraph r = {.cx = cx, .g = g, .problem = ls_problem_new(cx, g, "test", &target)};
    r.addresses = ls_addresses_new(cx, g, real_bytes, NULL, false);
    if (!ls_plan_none(cx->arena, &r.problem->dag, &r.plan) || mkdtemp(dir) == NULL)
        return false;
    bool ok = print(&r, dir);
    return system(ls_arena_printf(cx->arena, "rm -rf %s", dir)) == 0 && ok;
}

LsRunGraph *ls_run_graph_new(LsCtx *cx, const LsGraph *g, int real_bytes)
{
    const LsTarget target = ls_target_cpu(real_bytes);
    LsProblem *problem = ls_problem_new(cx, g, "test", &target);
    LsPlan plan;
    return ls_plan_none(cx->arena, &problem->dag, &plan)
        ? ls_run_graph_plan(cx, problem, &plan, NULL) : NULL;
}

void ls_run_graph_free(LsRunGraph *r)
{
    ls_pool_destroy(r->run.pool);
    free(r->arena);
    free(r->state);
    if (r->handle != NULL)
        dlclose(r->handle);
}

static char *locate(const LsRunGraph *r, LsAddress a)
{
    switch (a.space) {
    case LS_AT_ARENA: return r->arena + a.offset;
    case LS_AT_STATE: return r->state + a.offset;
    case LS_AT_CONST: return (char *)(uintptr_t)r->program->constant + a.offset;
    case LS_AT_INPUT: return r->input[a.offset];
    default:          return NULL;
    }
}

static void run_step(LsRunGraph *r, const LsStep *s)
{
    void *arg[256];
    for (int k = 0; k < s->narg; k++)
        arg[k] = locate(r, r->program->argument.address[s->arg + (uint32_t)k]);
    s->run(&r->run, arg);
}

void ls_run_graph_step(LsRunGraph *r)
{
    for (uint32_t k = 0; k < r->program->phase.train.nstep; k++)
        run_step(r, &r->program->phase.train.step[k]);
}

static const LsWatch *find_watch(const LsRunGraph *r, LsValueId v)
{
    for (uint32_t k = 0; k < r->g->noutput; k++)
        if (r->g->output[k].i == v.i)
            return &r->program->phase.train.watch[k];
    for (uint32_t k = 0; k < r->g->ngrad; k++)
        if (r->g->grad[k].grad.i == v.i)
            return &r->program->phase.train.watch[r->g->noutput + k];
    return NULL;
}

void ls_run_graph_until(LsRunGraph *r, LsValueId v)
{
    const LsWatch *w = find_watch(r, v);
    uint32_t last = w != NULL ? w->step + 1 : r->program->phase.train.nstep;
    for (uint32_t k = 0; k < last && k < r->program->phase.train.nstep; k++)
        run_step(r, &r->program->phase.train.step[k]);
}

void ls_run_graph_step_seen(LsRunGraph *r, void (*seen)(void *at, uint32_t k, const char *bytes),
                            void *at)
{
    const LsPhaseTable *t = &r->program->phase.train;
    for (uint32_t s = 0; s < t->nstep; s++) {
        for (uint32_t k = 0; k < t->nwatch; k++)
            if (t->watch[k].before && t->watch[k].step == s)
                seen(at, k, locate(r, t->watch[k].t.at));
        run_step(r, &t->step[s]);
        for (uint32_t k = 0; k < t->nwatch; k++)
            if (!t->watch[k].before && t->watch[k].step == s)
                seen(at, k, locate(r, t->watch[k].t.at));
    }
}

/* Bytes of element i, in the value's layout. */
static char *element(const LsRunGraph *r, LsValueId v, int64_t i)
{
    const LsValue *x = &r->g->value[v.i];
    const LsWatch *w = find_watch(r, v);
    LsAddress at = x->kind != LS_V_TEMP ? ls_address_source(r->addresses, r->g, v)
        : w != NULL ? w->t.at : r->program->phase.train.loss;
    int64_t stride[LS_MAX_RANK], place = 0;
    ls_strides(&x->shape, x->layout, stride);
    for (int k = x->shape.rank - 1; k >= 0; k--) {
        place += i % x->shape.dim[k] * stride[k];
        i /= x->shape.dim[k];
    }
    return locate(r, at) + place * ls_type_bytes(x->type, r->problem->target.real_bytes);
}

double ls_run_graph_get(const LsRunGraph *r, LsValueId v, int64_t i)
{
    const char *p = element(r, v, i);
    double d;
    float f;
    int64_t l;
    int32_t w;
    switch (ls_type(r->g, v)) {
    case LS_REAL:
        if (r->problem->target.real_bytes == 8)
            return memcpy(&d, p, 8), d;
        return memcpy(&f, p, 4), f;
    case LS_I64: return memcpy(&l, p, 8), (double)l;
    case LS_I32: return memcpy(&w, p, 4), w;
    case LS_BF16: return (double)ls_from_bf16(*(const ls_bf16 *)p);
    case LS_F16: return (double)ls_from_f16(*(const ls_f16 *)p);
    default:     return *(const uint8_t *)p;
    }
}

void ls_run_graph_set(LsRunGraph *r, LsValueId v, int64_t i, double x)
{
    char *p = element(r, v, i);
    float f = (float)x;
    int64_t l = (int64_t)x;
    int32_t w = (int32_t)x;
    switch (ls_type(r->g, v)) {
    case LS_REAL:
        if (r->problem->target.real_bytes == 8)
            memcpy(p, &x, 8);
        else
            memcpy(p, &f, 4);
        break;
    case LS_I64: memcpy(p, &l, 8); break;
    case LS_I32: memcpy(p, &w, 4); break;
    default:     *(uint8_t *)p = (uint8_t)x;
    }
}
