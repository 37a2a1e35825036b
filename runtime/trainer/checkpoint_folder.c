/* runtime/trainer/checkpoint_folder.c -- see checkpoint_folder.h. */
#include "runtime/trainer/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_path(LsSaver *s, int64_t update)
{
    snprintf(s->path, sizeof s->path, "%s/step-%09" PRId64 ".safetensors", s->folder, update);
}

/* Inserts into the ascending list; when it is full the oldest is forgotten (its file stays). */
static void note(LsSaver *s, int64_t update)
{
    int at = s->count;
    if (s->count == LS_KEEP && update < s->update[0])
        return;
    for (int k = 0; k < s->count; k++)
        if (s->update[k] == update)
            return;
    if (s->count == LS_KEEP) {
        memmove(s->update, s->update + 1, (LS_KEEP - 1) * sizeof s->update[0]);
        at = --s->count;
    }
    for (; at > 0 && s->update[at - 1] > update; at--)
        s->update[at] = s->update[at - 1];
    s->update[at] = update;
    s->count++;
}

bool ls_saver_open(LsSaver *s, const char *folder, int64_t keep, LsError *e)
{
    s->folder = folder;
    s->keep = keep;
    if (strlen(folder) > LS_PATH - 64)
        return ls_fail(e, LS_EXIT_USAGE, "--save: path too long");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot make the folder: %s", folder, strerror(errno));
    DIR *d = opendir(folder);
    if (!d)
        return ls_fail(e, LS_EXIT_FAIL, "%s: %s", folder, strerror(errno));
    for (struct dirent *f; (f = readdir(d)) != NULL;) {
        int64_t update;
        int n = 0;
        if (sscanf(f->d_name, "step-%18" SCNd64 ".safetensors%n", &update, &n) == 1 && n > 0
            && f->d_name[n] == '\0')
            note(s, update);
    }
    closedir(d);
    set_path(s, 0);
    return ls_out_check(s->path, e);
}

bool ls_saver_save(LsSaver *s, const LsMemory *m, const LsPlace *at, LsError *e)
{
    set_path(s, at->update);
    if (!ls_checkpoint_save(m, at, s->path, e))
        return false;
    note(s, at->update);
    while (s->keep > 0 && s->count > s->keep) {
        set_path(s, s->update[0]);
        unlink(s->path);
        memmove(s->update, s->update + 1, (size_t)--s->count * sizeof s->update[0]);
    }
    set_path(s, at->update);
    return true;
}

bool ls_saver_load(LsSaver *s, const LsMemory *m, LsPlace *at, bool *found, LsError *e)
{
    LsError first = {0};
    *found = false;
    for (int k = s->count; k-- > 0 && !*found;) {
        LsError one = {0};
        set_path(s, s->update[k]);
        *found = ls_checkpoint_load(m, at, s->path, &one);
        if (*found)
            break;
        fprintf(stderr, "warning: %s; trying the one before\n", one.text);
        if (first.code == LS_EXIT_DONE)
            first = one;
    }
    if (!*found && first.code != LS_EXIT_DONE)
        *e = first;
    return *found || first.code == LS_EXIT_DONE;
}
