/* scheduler/graph/recompute_policy.h -- what may run again, as users name it: the policies of
 * --recompute. */
#ifndef LS_SCHEDULER_GRAPH_RECOMPUTE_POLICY_H
#define LS_SCHEDULER_GRAPH_RECOMPUTE_POLICY_H

#include <stdbool.h>

/* Where a policy applies. */
typedef enum {
    LS_POLICY_OF_ALL,           /* training graphs, whole programs, micro-batches, stages */
    LS_POLICY_OF_PROGRAMS       /* programs of several micro-batches, which it treats differently */
} LsPolicyScope;

/* The only list of them: the enumerator's end, the name, where it applies, what runs again. FIRST
 * and NEXT are macros, so that texts can join the rows by words of their own. */
#define LS_RECOMPUTE_POLICIES(FIRST, NEXT) \
    FIRST(AUTO, "auto", ALL, "what pays") \
    NEXT(NONE, "none", ALL, "nothing") \
    NEXT(CHEAP, "cheap", ALL, "neither matrix products nor convolutions") \
    NEXT(CONV_SAVED, "conv-saved", ALL, "no convolutions") \
    NEXT(ALL, "all", ALL, "all that can") \
    NEXT(EXCEPT_LAST, "except-last", PROGRAMS, \
         "as all, but nothing of the last micro-batch of an update, " \
         "or of the first one in a pipeline")

#define LS_POLICY_ENUMERATOR(id, name, scope, again) LS_RECOMPUTE_##id,
typedef enum {
    LS_RECOMPUTE_POLICIES(LS_POLICY_ENUMERATOR, LS_POLICY_ENUMERATOR)
    LS_NRECOMPUTE
} LsRecompute;
#undef LS_POLICY_ENUMERATOR

/* "auto|none|...", and "auto: what pays; none: nothing; ..." */
#define LS_POLICY_NAME(id, name, scope, again) name
#define LS_POLICY_OR_NAME(id, name, scope, again) "|" name
#define LS_POLICY_MEANING(id, name, scope, again) name ": " again
#define LS_POLICY_NEXT_MEANING(id, name, scope, again) "; " name ": " again
#define LS_RECOMPUTE_NAMES LS_RECOMPUTE_POLICIES(LS_POLICY_NAME, LS_POLICY_OR_NAME)
#define LS_RECOMPUTE_MEANINGS LS_RECOMPUTE_POLICIES(LS_POLICY_MEANING, LS_POLICY_NEXT_MEANING)

typedef struct LsRecomputePolicy { const char *name; LsPolicyScope scope; } LsRecomputePolicy;
extern const LsRecomputePolicy ls_recompute_policy[LS_NRECOMPUTE];

/* False: no policy has that name. */
bool ls_recompute_parse(const char *text, LsRecompute *to);

#endif
