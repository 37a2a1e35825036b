/* runtime/data/label_input.c -- see label_input.h. */
#include "runtime/data/label_input.h"

uint32_t ls_label_input(const LsProgram *p)
{
    for (uint32_t k = 0; k < p->ninput; k++)
        if (p->input[k].is_label)
            return k;
    return p->ninput;
}
