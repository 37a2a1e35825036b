/* compiler/fold.c */
#include "compiler/fold.h"

bool ls_fold(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId *out)
{
    (void)cx, (void)g, (void)n, (void)out;
    return false;
}
