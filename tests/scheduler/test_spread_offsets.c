/* tests/scheduler/test_spread_offsets.c -- dependencies between runs, and offsets that let more
 * runs go on at once. */
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "scheduler/plan/run_dependencies.h"
#include "scheduler/plan/spread_offsets.h"
#include "tests/support/less.h"
#include "tests/support/random_graph.h"
#include "tests/support/suite.h"

#include <string.h>

#define QUICK(...) (LsPlanOptions){.effort = 1, .unproven = true, __VA_ARGS__}

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* ---- memory that remembers which run wrote each byte ---- */

typedef struct Memory { uint32_t *arena, *state; } Memory;

static Memory fresh_memory(const LsDag *g, const LsPlan *plan)
{
    return (Memory){ls_arena_alloc(a, (size_t)plan->arena + 1, sizeof(uint32_t)),
                    ls_arena_alloc(a, g->ntensor + 1u, sizeof(uint32_t))};
}

static uint64_t mixed(uint64_t hash, uint32_t token) { return (hash ^ token) * 0x100000001b3u; }

static void write_bytes(Memory *m, int64_t lo, int64_t bytes, uint32_t token)
{
    for (int64_t b = lo; b < lo + bytes; b++)
        m->arena[b] = token;
}

/* Where each operand of each run lies, in the order of the plan. */
static int64_t **operand_places(const LsDag *g, const LsPlan *plan)
{
    int64_t **place = ls_arena_alloc(a, plan->nstep, sizeof *place);
    int64_t *at = ls_arena_alloc(a, g->ntensor + 1u, sizeof *at);
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *st = &plan->step[s];
        const LsDagNode *n = &g->node[st->id];
        if (st->free)
            continue;
        place[s] = ls_arena_alloc(a, n->nin + 1u, sizeof **place);
        for (uint32_t k = 0; k < n->nin; k++)
            place[s][k] = at[n->in[k]];
        for (uint32_t k = 0; k < n->nout; k++)
            at[n->out[k]] = plan->offset[st->offset + k];
    }
    return place;
}

/* Does step s, run number r. Returns what it found in its operands. */
static uint64_t do_run(const LsDag *g, const LsPlan *plan, uint32_t s, uint32_t r,
                       const int64_t *place, Memory *m)
{
    const LsPlanStep *st = &plan->step[s];
    const LsDagNode *n = &g->node[st->id];
    uint64_t found = 0;
    for (uint32_t k = 0; k < n->nin; k++) {
        const LsDagTensor *t = &g->tensor[n->in[k]];
        if (t->persistent)
            found = mixed(found, m->state[n->in[k]]);
        for (int64_t b = 0; b < t->bytes && !t->persistent; b++)
            found = mixed(found, m->arena[place[k] + b]);
    }
    for (uint32_t k = 0; k < n->nupd; k++)
        m->state[n->upd[k]] = r + 1;
    if (n->workspace > 0)
        write_bytes(m, st->workspace_offset, n->workspace, r + 1);
    for (uint32_t k = 0; k < n->nout; k++)
        write_bytes(m, plan->offset[st->offset + k], g->tensor[n->out[k]].bytes, r + 1);
    return found;
}

/* The values that all runs find, in the order of the plan or in another order that the dependencies
 * allow. */
static uint64_t *found_by_all(const LsDag *g, const LsPlan *plan, const LsWaits *w, uint64_t seed)
{
    uint32_t *step = ls_arena_alloc(a, plan->nstep, sizeof *step), n = 0;
    int64_t **place = operand_places(g, plan);
    for (uint32_t s = 0; s < plan->nstep; s++)
        if (!plan->step[s].free)
            step[n++] = s;
    uint64_t *found = ls_arena_alloc(a, n + 1u, sizeof *found);
    bool *over = ls_arena_alloc(a, n + 1u, sizeof *over);
    Memory m = fresh_memory(g, plan);
    for (uint32_t done = 0; done < n; done++) {
        uint32_t ready = 0, next = UINT32_MAX;
        for (uint32_t r = 0; r < n && (w != NULL || ready == 0); r++) {
            bool waits = over[r];
            for (uint32_t k = w != NULL ? w->on.at[r] : 0; w != NULL && k < w->on.at[r + 1]; k++)
                waits |= !over[w->on.id[k]];
            if (!waits && dag_random(&seed, ++ready) == 0)
                next = r;
        }
        ck_assert_uint_ne(next, UINT32_MAX);
        found[next] = do_run(g, plan, step[next], next, place[step[next]], &m);
        over[next] = true;
    }
    return found;
}

static void check_orders(const LsDag *g, const LsPlan *plan, uint32_t *nrun)
{
    LsPieces p = ls_pieces(a, g, plan);
    LsWaits w = ls_waits(a, &p, false);
    uint64_t *serial = found_by_all(g, plan, NULL, 0);
    for (uint64_t order = 1; order <= 4; order++) {
        uint64_t *other = found_by_all(g, plan, &w, order);
        for (uint32_t r = 0; r < p.nrun; r++)
            ck_assert_msg(serial[r] == other[r], "%s: run %u finds something else", g->name, r);
    }
    *nrun += p.nrun;
}

static double longest(const LsDag *g, const LsPlan *plan, bool apart)
{
    LsPieces p = ls_pieces(a, g, plan);
    LsWaits w = ls_waits(a, &p, apart);
    return ls_waits_longest(&p, &w);
}

START_TEST(any_order_that_the_waits_allow_finds_the_same)
{
    char why[300];
    const uint32_t graphs = (uint32_t)tests_part(40, 16);
    uint32_t nrun = 0, shorter = 0;
    for (uint64_t seed = 1; seed <= graphs; seed++) {
        LsDag *g = random_graph(a, 8 + seed % 5, 8, seed);
        for (int part = 100; part >= 50; part -= 25) {
            LsPlan plan;
            LsPlanReport report;
            if (!ls_plan(a, g, &QUICK(.budget.percent = part), &plan, &report))
                continue;
            double before = longest(g, &plan, false), apart = longest(g, &plan, true);
            int64_t arena = plan.arena;
            ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "as planned, seed %d: %s", (int)seed,
                          why);
            check_orders(g, &plan, &nrun);
            ls_spread(a, g, &plan);
            ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "seed %d: %s", (int)seed, why);
            ck_assert_int_le(plan.arena, arena);
            check_orders(g, &plan, &nrun);
            double after = longest(g, &plan, false);
            ck_assert_double_ge(after, apart);
            shorter += after < before;
        }
    }
    ck_assert_uint_gt(nrun, 25 * graphs);
    ck_assert_uint_gt(shorter, graphs / 4);
}
END_TEST

/* A large value, then a chain whose values each feed a side run that no other run waits for: like
 * data and weight gradients. */
enum { RUNGS = 6, ASIDE = 300000, ALONG = 100000 };

static LsDag *ladder(void)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    *g = (LsDag){.name = "ladder", .alignment = 64,
                 .tensor = ls_arena_alloc(a, 3 * RUNGS + 4, sizeof *g->tensor),
                 .node = ls_arena_alloc(a, 3 * RUNGS + 4, sizeof *g->node)};
    uint32_t *id = ls_arena_alloc(a, 8 * RUNGS + 8, sizeof *id), last = 0;
    g->tensor[g->ntensor++] = (LsDagTensor){"large", 1000, false, false};
    *id = 0;
    g->node[g->nnode++] =
        (LsDagNode){.name = "first", .cost = ALONG, .out = id++, .nout = 1, .of = -1};
    for (int k = 0; k < RUNGS; k++) {
        uint32_t value = g->ntensor++, state = g->ntensor++;
        g->tensor[value] = (LsDagTensor){"value", 100, false, k == RUNGS - 1};
        g->tensor[state] = (LsDagTensor){"state", 8, true, false};
        id[0] = last, id[1] = value, id[2] = value, id[3] = state;
        g->node[g->nnode++] = (LsDagNode){.name = "along", .cost = ALONG, .in = id, .nin = 1,
                                          .out = id + 1, .nout = 1, .of = -1};
        g->node[g->nnode++] = (LsDagNode){.name = "aside", .cost = ASIDE, .in = id + 2, .nin = 2,
                                          .upd = id + 3, .nupd = 1, .of = -1};
        last = value;
        id += 4;
    }
    return g;
}

START_TEST(room_that_is_there_is_used)
{
    LsDag *g = ladder();
    LsPlan plan;
    LsPlanReport report;
    char why[300];
    ck_assert(ls_plan(a, g, &QUICK(.strategy = "none"), &plan, &report));
    int64_t arena = plan.arena;
    ck_assert_double_gt(longest(g, &plan, false), (RUNGS + 1) * ALONG + ASIDE);
    ls_spread(a, g, &plan);
    ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "%s", why);
    ck_assert_int_eq(plan.arena, arena);
    ck_assert_double_eq(longest(g, &plan, false), (RUNGS + 1) * ALONG + ASIDE);
}
END_TEST

START_TEST(a_run_waits_for_no_more_than_it_must)
{
    LsDag *g = ladder();
    LsPlan plan;
    LsPlanReport report;
    ck_assert(ls_plan(a, g, &QUICK(.strategy = "none"), &plan, &report));
    ls_spread(a, g, &plan);
    LsPieces p = ls_pieces(a, g, &plan);
    LsWaits w = ls_waits(a, &p, false);
    ck_assert_uint_eq(p.nrun, 2 * RUNGS + 1);
    ck_assert_uint_eq(w.on.at[1], 0);
    for (uint32_t r = 1; r < p.nrun; r++) {     /* along, aside, along, aside, ... */
        uint32_t n = w.on.at[r + 1] - w.on.at[r], above = r == 1 ? 0 : r % 2 == 0 ? r - 1 : r - 2;
        ck_assert_uint_ge(n, 1);
        ck_assert_uint_eq(w.on.id[w.on.at[r] + n - 1], above);
        if (n > 1)                              /* for the bytes of a value that ended long ago */
            ck_assert_uint_lt(w.on.id[w.on.at[r] + n - 2] + 6, r);
        ck_assert(ls_waits_for(&w, r, 0));
        ck_assert(!ls_waits_for(&w, r, r));
    }
    ck_assert(!ls_waits_for(&w, 3, 2));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("spread");
    const TTest *const tests[] = {any_order_that_the_waits_allow_finds_the_same,
                                  room_that_is_there_is_used, a_run_waits_for_no_more_than_it_must};
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("spread", tc);
}
