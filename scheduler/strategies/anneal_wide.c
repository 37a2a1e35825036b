/* scheduler/strategies/anneal_wide.c -- simulated annealing without restrictions: small changes of
 * the order, added and removed runs, through falling targets, each from a high temperature, as in
 * FastSA (NeurIPS 2023).
 *
 * The search has no idea of what is worth keeping. In graphs without a turn from forward to
 * backward the order matters more, and it finds sequences that repairs of the cheapest sequence
 * miss. */
#include "scheduler/local_search/annealing.h"

#include <math.h>

#include "scheduler/algorithms/tasks.h"
#include "scheduler/strategies/published_strategies.h"

enum { LANES = 2 };

typedef struct Way {
    double heat, weight;
    uint32_t kinds;             /* number of kinds of moves; kinds from 30 on move groups */
    uint32_t again;             /* retries at a missed target, each with twice the weight */
    uint32_t misses;            /* missed targets in a row that end the search */
} Way;

/* `quick` fits the usual time. `unplaced` is for plans without packing: more time, and a high
 * temperature, which lowers live bytes further and cannot spoil the packing. `patient` takes
 * several times as long. */
static const Way quick[LANES] = {{3, 3, 30, 0, 3}, {3, 3, 30, 0, 3}};
static const Way unplaced[LANES] = {{6, 3, 30, 0, 3}, {3, 3, 30, 0, 3}};
static const Way patient[LANES] = {{6, 3, 30, 1, 2}, {0.3, 1, 42, 6, 1}};

typedef struct Roam {
    LsAnneal lane[LANES];
    const LsSeq *from;
    const Way *way;             /* by lane */
    uint32_t moves;             /* at each target */
} Roam;

/* Makes a random move. most: limit of the cost of a recomputation. */
static bool change(LsAnneal *s, const Way *way, double most)
{
    enum { TRIES = 8, FAR = 16 };
    LsMoves *m = s->m;
    if (m->swaps && ls_moves_random(m, 16) == 0)
        return ls_move_swap(m);
    uint32_t kind = ls_moves_random(m, way->kinds), run;
    if (kind >= 30)
        return ls_move_together(m, FAR);
    if (kind < 12)
        return ls_move_shift(m);
    if (kind < 16)
        return ls_move_again_for_any(m, most);
    if (kind < 20)
        return ls_move_again_for_peak(m, most);
    if (kind < 24)
        return ls_move_all_again_for_peak(m, most);
    if (kind == 24)
        return ls_move_jump(m);
    if (kind == 25)
        return ls_move_trade(m, TRIES);
    return (run = ls_moves_extra(m)) != LS_TAPE_END && ls_move_drop(m, run);
}

/* Anneals from one target to the next, with intermediate targets at first. */
static void anneal(LsAnneal *s, const Way *way, uint32_t moves, int64_t from, int64_t to)
{
    enum { STEP = 256 };                            /* moves with the same temperature and target */
    const double soft = 0.2, cool = 1.0 / 60;
    uint32_t most = 4 * s->p->n + 64;               /* limit of runs: runs without cost would grow
                                                     * without end */
    double now = 0, heat = 0;
    s->t->nchange = 0;
    for (uint32_t k = 0; k < moves && !s->cut; k++) {
        if (k % STEP == 0) {
            double part = (double)k / moves, left = part < soft ? 1 - part / soft : 0;
            s->m->target = to + (int64_t)(left * (double)(from - to));
            heat = s->hot * pow(cool, part);
            now = ls_moves_energy(s->m, s->weight);
            s->cut = ls_moves_out_of_time(s->m, &s->limit);
        }
        if (ls_moves_worked_long(s->m))
            s->cut = ls_moves_out_of_time(s->m, &s->limit);
        double rise = ls_moves_rise(s->m, heat);
        uint32_t runs = s->t->n;
        bool made = change(s, way, now + rise - s->t->cost)
                    && (s->t->n <= runs || s->t->n <= most);
        ls_anneal_judge(s, made, rise, &now);
    }
}

/* Anneals to a target, with retries. If it is reached, loads the best sequence and returns true. */
static bool reach(LsAnneal *s, const Way *way, uint32_t moves, int64_t from, int64_t to)
{
    const double weight = s->weight;
    const LsFrontItem *best = NULL;
    for (uint32_t k = 0; best == NULL && k <= way->again && !s->cut; k++) {
        anneal(s, way, moves, k == 0 ? from : to, to);
        best = ls_front_best(&s->front, to);
        s->weight *= 2;
    }
    s->weight = weight;
    if (best != NULL)
        ls_anneal_load(s, &best->seq, to);
    return best != NULL;
}

static void descend(void *roam, uint32_t k)
{
    enum { PARTS = 40 };
    Roam *r = roam;
    LsAnneal *s = &r->lane[k];
    const Way *way = &r->way[k];
    int64_t from = s->top;
    s->m->rnd += k << 20;
    ls_anneal_load(s, r->from, from);
    for (uint32_t part = PARTS - 1, missed = 0;
         part > 0 && missed < way->misses && !s->cut; part--) {
        int64_t to = s->top / PARTS * part;
        missed = reach(s, way, r->moves, from, to) ? 0 : missed + 1;
        from = to;
    }
}

void ls_strategy_roam(LsCandidates *pool, LsLimit *limit, bool is_patient)
{
    enum { MOST = 50000, PER_NODE = 200 };
    const LsProb *p = pool->prob;
    if (pool->n == 0 || pool->cand[0].peak == 0 || pool->has_turn)
        return;
    LsArena *arena = ls_arena_new();
    uint32_t moves = p->n < MOST / PER_NODE ? p->n * PER_NODE : MOST;
    moves *= p->unplaced ? 2 : 1;
    const Way *way = is_patient ? patient : p->unplaced ? unplaced : quick;
    Roam r = {.from = &pool->cand[0].seq, .way = way,
              .moves = (uint32_t)((uint64_t)moves * limit->effort / 100)};
    for (uint32_t k = 0; k < LANES; k++) {
        r.lane[k] = ls_anneal_new(arena, p, pool->cand[0].peak, limit);
        ls_anneal_mood(&r.lane[k], r.way[k].heat, r.way[k].weight);
    }
    ls_side_by_side(LANES, descend, &r);
    for (uint32_t k = 1; k < LANES; k++) {
        ls_front_move(&r.lane[0].front, &r.lane[k].front);
        ls_anneal_free(&r.lane[k]);
    }
    ls_anneal_offer(&r.lane[0], pool);
    limit->work = r.lane[0].limit.work;
    ls_anneal_free(&r.lane[0]);
    ls_arena_free(arena);
}
