/* scheduler/state_search/inplace_matching.c -- see the header. */
#include "scheduler/state_search/inplace_matching.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LOOKS = 1000000 };  /* pairs for one matching; beyond, every result that has an operand
                                 * counts as matched */

static const uint32_t nobody = UINT32_MAX;

typedef struct Result { int64_t size; uint32_t tensor, place; } Result;

static int largest_first(const void *x, const void *y)
{
    const Result *a = x, *b = y;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Finds the results of the node's usable pairs, each once. number: scratch, by tensor. */
static void find_results(LsArena *arena, const LsDagNode *n, const int64_t *size,
                         const LsDagPair *pair, uint32_t npair, uint32_t *number,
                         LsInplaceNode *to)
{
    LsArena *tmp = ls_arena_new();
    Result *result = ls_arena_alloc(tmp, npair + 1u, sizeof *result);
    for (uint32_t k = 0; k < n->nout; k++)
        number[n->out[k]] = nobody;
    for (uint32_t k = 0; k < npair; k++)
        if (number[pair[k].out] == nobody) {
            number[pair[k].out] = to->nout;
            result[to->nout] = (Result){size[pair[k].out], pair[k].out, to->nout};
            to->nout++;
        }
    qsort(result, to->nout, sizeof *result, largest_first);
    to->out = ls_arena_alloc(arena, to->nout + 1u, sizeof *to->out);
    for (uint32_t k = 0; k < to->nout; k++) {
        to->out[k] = result[k].tensor;
        number[result[k].tensor] = k;
    }
    ls_arena_free(tmp);
}

static void fill_node(LsArena *arena, const LsDagNode *n, const int64_t *size,
                      const LsDagPair *pair, uint32_t npair, uint32_t *number, LsInplaceNode *to)
{
    LsPairs may = {0};
    LsArena *tmp = ls_arena_new();
    find_results(arena, n, size, pair, npair, number, to);
    for (uint32_t k = 0; k < npair; k++)
        number[pair[k].in] = nobody;
    to->in = ls_arena_alloc(arena, npair + 1u, sizeof *to->in);
    for (uint32_t k = 0; k < npair; k++) {
        if (number[pair[k].in] == nobody) {
            number[pair[k].in] = to->nin;
            to->in[to->nin++] = pair[k].in;
        }
        ls_pairs_add(tmp, &may, number[pair[k].out], number[pair[k].in]);
    }
    to->may = ls_rows(arena, &may, to->nout);
    to->apart = to->nout == npair && to->nin == npair;
    ls_arena_free(tmp);
}

LsInplace *ls_inplace_new(LsArena *arena, const LsDag *dag, const int64_t *size,
                          bool (*may_use)(const void *of, LsDagPair pair), const void *of)
{
    LsInplace *x = ls_arena_alloc(arena, 1, sizeof *x);
    uint32_t *number = NULL, nin = 0, nout = 0;
    *x = (LsInplace){.node = ls_arena_alloc(arena, dag->nnode + 1u, sizeof *x->node), .size = size};
    for (uint32_t v = 0; v < dag->nnode; v++) {
        const LsDagNode *n = &dag->node[v];
        if (n->ninplace == 0)
            continue;
        if (number == NULL)
            number = ls_arena_alloc(arena, dag->ntensor + 1u, sizeof *number);
        LsDagPair *pair = ls_arena_alloc(arena, n->ninplace, sizeof *pair);
        uint32_t npair = 0;
        for (uint32_t k = 0; k < n->ninplace; k++)
            if (may_use(of, n->inplace[k]))
                pair[npair++] = n->inplace[k];
        fill_node(arena, n, size, pair, npair, number, &x->node[v]);
        nin = x->node[v].nin > nin ? x->node[v].nin : nin;
        nout = x->node[v].nout > nout ? x->node[v].nout : nout;
    }
    x->holder = ls_arena_alloc(arena, nin + 1u, sizeof *x->holder);
    x->from = ls_arena_alloc(arena, nin + 1u, sizeof *x->from);
    x->seen = ls_arena_alloc(arena, nin + 1u, sizeof *x->seen);
    x->queue = ls_arena_alloc(arena, nout + 1u, sizeof *x->queue);
    x->held = ls_arena_alloc(arena, nout + 1u, sizeof *x->held);
    return x;
}

static bool stays_on(const uint64_t *stays, uint32_t tensor)
{
    return stays[tensor / 64] >> (tensor % 64) & 1;
}

/* Flips the augmenting path that ends at the free operand `at`: each result on it takes the next
 * operand. */
static void augment(LsInplace *x, uint32_t at)
{
    for (uint32_t next; at != nobody; at = next) {
        uint32_t result = x->from[at];
        next = x->held[result];
        x->held[result] = at;
        x->holder[at] = result;
    }
}

/* Matches one more result if an augmenting path exists. */
static bool match(LsInplace *x, const LsInplaceNode *n, uint32_t result, const uint64_t *stays)
{
    uint32_t nqueue = 0;
    x->stamp++;
    x->queue[nqueue++] = result;
    for (uint32_t q = 0; q < nqueue; q++)
        for (uint32_t k = n->may.at[x->queue[q]]; k < n->may.at[x->queue[q] + 1]; k++) {
            uint32_t i = n->may.id[k];
            x->looks++;
            if (x->seen[i] == x->stamp || stays_on(stays, n->in[i]))
                continue;
            x->seen[i] = x->stamp;
            x->from[i] = x->queue[q];
            if (x->holder[i] == nobody) {
                augment(x, i);
                return true;
            }
            x->queue[nqueue++] = x->holder[i];
        }
    return false;
}

/* Returns whether the result may take an operand that does not stay. */
static bool may_match(LsInplace *x, const LsInplaceNode *n, uint32_t result, const uint64_t *stays)
{
    uint32_t k = n->may.at[result];
    while (k < n->may.at[result + 1] && stays_on(stays, n->in[n->may.id[k]]))
        k++;
    x->looks += k - n->may.at[result] + 1;
    return k < n->may.at[result + 1];
}

int64_t ls_inplace_spared(LsInplace *x, uint32_t node, const uint64_t *stays)
{
    const LsInplaceNode *n = &x->node[node];
    const uint64_t most = x->looks + MOST_LOOKS;
    int64_t spared = 0;
    for (uint32_t i = 0; i < n->nin; i++)
        x->holder[i] = nobody;
    for (uint32_t r = 0; r < n->nout; r++) {
        x->held[r] = nobody;
        bool easy = n->apart || x->looks > most;
        if (easy ? may_match(x, n, r, stays) : match(x, n, r, stays))
            spared += x->size[n->out[r]];
    }
    return spared;
}
