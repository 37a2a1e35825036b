/* compiler/adapters/adapters.c -- see the header. */
#include "compiler/adapters/adapters.h"

#include <string.h>

LsAdapters *ls_adapters_new(LsArena *a, const LsAdapterSpec *spec)
{
    LsAdapters *made = ls_arena_alloc(a, 1, sizeof *made);
    made->spec = spec;
    made->trained.arena = made->made.arena = a;
    return made;
}

bool ls_adapters_train(const LsAdapters *a, const char *tensor)
{
    return ls_names_find(&a->trained, tensor) != 0;
}

bool ls_adapters_made(const LsAdapters *a, const char *tensor)
{
    for (uint32_t k = 0; k < a->nadapted; k++) {
        const LsAdapted *of = &a->adapted[k];
        if (strcmp(of->a, tensor) == 0 || strcmp(of->b, tensor) == 0
            || (of->magnitude != NULL && strcmp(of->magnitude, tensor) == 0))
            return true;
    }
    return false;
}

const LsAdapterTensor *ls_adapters_tensor(const LsAdapters *a, const char *tensor)
{
    for (uint32_t k = 0; k < a->ntensor; k++)
        if (strcmp(a->tensor[k].name, tensor) == 0)
            return &a->tensor[k];
    return NULL;
}

static bool ends(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool ls_adapters_stop(const LsAdapters *a, const char *value)
{
    return a->spec->dora && ends(value, LS_DORA_NORM);
}
