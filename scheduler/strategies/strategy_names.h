/* scheduler/strategies/strategy_names.h -- the strategies that users name, in the order of tables:
 * none first, auto last. */
#ifndef LS_SCHEDULER_STRATEGIES_STRATEGY_NAMES_H
#define LS_SCHEDULER_STRATEGIES_STRATEGY_NAMES_H

/* The only list of them. ONE(name, colours) makes candidates of its own name. TWO(name, colours)
 * makes those of its halves, name "-tc" and name "-mc". The colours are those of its curves, on
 * light pages and on dark ones. */
#define LS_STRATEGIES(ONE, TWO) \
    ONE("none", "#6b7280", "#a0a7b0") \
    ONE("chen", "#c2571a", "#ff9a5c") \
    TWO("approx", "#2b8a3e", "#69c47d") \
    TWO("exact", "#8a3ab9", "#c792ea") \
    ONE("auto", "#1f5fc4", "#6ea8ff")

/* All names in one text: " none chen approx-tc ...". */
#define LS_STRATEGY_ONE_WORD(name, light, dark) " " name
#define LS_STRATEGY_TWO_WORDS(name, light, dark) " " name "-tc " name "-mc " name
#define LS_STRATEGY_WORDS LS_STRATEGIES(LS_STRATEGY_ONE_WORD, LS_STRATEGY_TWO_WORDS)

typedef struct LsStrategyName {
    const char *name, *part[2]; /* part: names of its candidates; the second may be NULL */
    const char *light, *dark;   /* colours of its curves */
} LsStrategyName;

#define LS_STRATEGY_COUNT_ONE(name, light, dark) +1
enum { LS_NSTRATEGY = 0 LS_STRATEGIES(LS_STRATEGY_COUNT_ONE, LS_STRATEGY_COUNT_ONE) };

extern const LsStrategyName ls_strategy_name[LS_NSTRATEGY];

/* The strategy of that name, or whose candidates have it. NULL: there is none. */
const LsStrategyName *ls_strategy_find(const char *name);

#endif
