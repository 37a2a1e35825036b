/* scheduler/strategies/strategy_names.c -- see strategy_names.h. */
#include "scheduler/strategies/strategy_names.h"

#include <stddef.h>
#include <string.h>

#define ONE(name, light, dark) {name, {name, NULL}, light, dark},
#define TWO(name, light, dark) {name, {name "-tc", name "-mc"}, light, dark},
const LsStrategyName ls_strategy_name[LS_NSTRATEGY] = {LS_STRATEGIES(ONE, TWO)};

const LsStrategyName *ls_strategy_find(const char *name)
{
    for (int k = 0; k < LS_NSTRATEGY; k++) {
        const LsStrategyName *s = &ls_strategy_name[k];
        if (strcmp(name, s->name) == 0 || strcmp(name, s->part[0]) == 0
            || (s->part[1] != NULL && strcmp(name, s->part[1]) == 0))
            return s;
    }
    return NULL;
}
