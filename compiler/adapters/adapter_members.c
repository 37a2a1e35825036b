/* compiler/adapters/adapter_members.c -- the adapters of an ensemble's members: one architecture,
 * values of their own. */
#include "compiler/adapters/adapter_spec.h"

#include <string.h>

/* Each draws values of its own. */
static const LsAdapterSpec **seeded(LsArena *a, const LsAdapterSpec *first, int64_t members)
{
    const LsAdapterSpec **all = ls_arena_alloc(a, (size_t)members, sizeof(const LsAdapterSpec *));
    for (int64_t k = 1; k < members; k++) {
        LsAdapterSpec *one = ls_arena_alloc(a, 1, sizeof *one);
        *one = *first;
        one->seed = first->seed + (uint64_t)k;
        all[k - 1] = one;
    }
    return all;
}

static int64_t count_words(const char *list)
{
    int64_t n = 1;
    for (const char *p = list; *p != '\0'; p++)
        n += *p == ',';
    return n;
}

/* The folders of all members, each with the architecture of the first. */
static bool read_folders(LsCtx *cx, const char *dirs, int64_t members, LsAdapterSpec **first,
                         const LsAdapterSpec **further)
{
    char *save = NULL, *list = ls_arena_strdup(cx->arena, dirs);
    int64_t k = 0;
    for (char *dir = strtok_r(list, ",", &save); dir != NULL && k < members;
         dir = strtok_r(NULL, ",", &save), k++) {
        LsAdapterSpec *one = ls_adapter_config(cx, dir);
        if (one == NULL)
            return false;
        if (k == 0)
            *first = one;
        else if (strcmp(ls_adapter_config_text(cx->arena, one),
                        ls_adapter_config_text(cx->arena, *first)) != 0)
            return ls_error(cx, LS_NOWHERE, LS_E_OPTION,
                            "members of an ensemble differ in values, and not in ranks or modules",
                            "--adapter: the adapter_config.json of '%s' says otherwise than that "
                            "of '%s'",
                            dir, (*first)->dir);
        else
            further[k - 1] = one;
    }
    return k == members;
}

bool ls_adapter_members(LsCtx *cx, const char *lora, const char *dirs, int64_t members,
                        LsAdapterSpec **first, const LsAdapterSpec ***further)
{
    const int64_t folders = dirs != NULL ? count_words(dirs) : 1;
    *further = NULL;
    if (folders == 1 || members < 2) {
        *first = lora != NULL ? ls_adapter_option(cx, lora) : ls_adapter_config(cx, dirs);
        if (*first != NULL && lora != NULL && members > 1)
            *further = seeded(cx->arena, *first, members);
        return *first != NULL;
    }
    if (folders != members)
        return ls_error(cx, LS_NOWHERE, LS_E_OPTION, "one folder for all members, or one for each",
                        "--adapter: %lld folders for %lld members", (long long)folders,
                        (long long)members);
    *further = ls_arena_alloc(cx->arena, (size_t)members, sizeof(const LsAdapterSpec *));
    return read_folders(cx, dirs, members, first, *further)
           || (cx->nerror == 0
               && ls_error(cx, LS_NOWHERE, LS_E_OPTION, NULL,
                           "--adapter: '%s' has an empty name among its folders", dirs));
}
