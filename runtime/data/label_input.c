/* runtime/data/label_input.c -- see label_input.h. */
#include "runtime/data/label_input.h"

uint32_t ls_label_input(const LsProgram *p)
{
    uint32_t first = p->ninput;
    for (uint32_t k = p->ninput; k-- > 0;)
        if (p->input[k].is_label && (first == p->ninput || p->input[k].t.type != LS_DT_REAL
                                     || p->input[first].t.type == LS_DT_REAL))
            first = k;
    return first;
}

uint32_t ls_label_inputs(const LsProgram *p)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->ninput; k++)
        n += p->input[k].is_label;
    return n;
}
