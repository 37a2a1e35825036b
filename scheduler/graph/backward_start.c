/* scheduler/graph/backward_start.c -- see the header. */
#include "scheduler/graph/backward_start.h"

bool ls_turn_mark(const LsProb *p, bool *back)
{
    uint32_t first = 0;
    while (first < p->n && !(p->needed[first] && p->dag->node[first].kind == LS_DAG_BACKWARD))
        first++;
    for (uint32_t v = first; v < p->n; v++) {
        bool b = v == first;
        for (uint32_t k = p->in.at[v]; p->needed[v] && k < p->in.at[v + 1]; k++)
            b |= back[p->maker[p->in.id[k]]];
        back[v] = b && p->needed[v];
    }
    return first < p->n;
}
