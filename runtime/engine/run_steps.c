/* runtime/engine/run_steps.c -- see run_steps.h. */
#include "runtime/engine/run_steps.h"

void ls_steps_run(LsRun *run, const LsPhaseTable *t, void **arg, const LsHook *hook, int nhook)
{
    for (uint32_t k = 0; k < t->nstep; k++) {
        for (int h = 0; h < nhook; h++)
            if (hook[h].before)
                hook[h].before(hook[h].self, k);
        t->step[k].run(run, arg + t->step[k].arg);
        for (int h = 0; h < nhook; h++)
            if (hook[h].after)
                hook[h].after(hook[h].self, k);
    }
}
