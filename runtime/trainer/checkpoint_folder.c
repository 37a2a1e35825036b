/* runtime/trainer/checkpoint_folder.c -- see checkpoint_folder.h. */
#include "runtime/trainer/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void set_path(LsSaver *s, int64_t update)
{
    snprintf(s->path, sizeof s->path, "%s/step-%09" PRId64 ".safetensors", s->folder, update);
}

const char *ls_saver_best(const LsSaver *s, char path[LS_PATH])
{
    snprintf(path, LS_PATH, "%s/best.safetensors", s->folder);
    return path;
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

/* The update of a checkpoint's file name; -1: the name is none of theirs. */
static int64_t update_of(const char *name)
{
    int64_t update;
    int n = 0;
    return sscanf(name, "step-%18" SCNd64 ".safetensors%n", &update, &n) == 1 && n > 0
                   && name[n] == '\0'
               ? update
               : -1;
}

/* Not a file in the folder: it would stay when the process is killed. */
static bool hold(LsSaver *s, LsError *e)
{
    s->held = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return s->held < 0 || ls_file_hold(s->held)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--save=%s: another run is saving its checkpoints there; give each run a "
                      "folder of its own",
                      s->folder);
}

void ls_saver_close(LsSaver *s)
{
    if (s->folder != NULL && s->held >= 0)
        close(s->held);
    s->folder = NULL;
}

bool ls_saver_open(LsSaver *s, const char *folder, int64_t keep, bool holds, LsError *e)
{
    s->folder = folder;
    s->keep = keep;
    s->held = -1;
    if (strlen(folder) > LS_PATH - 64)
        return ls_fail(e, LS_EXIT_USAGE, "--save: path too long");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot make the folder: %s", folder, strerror(errno));
    if (holds && !hold(s, e))
        return false;
    DIR *d = opendir(folder);
    if (!d)
        return ls_fail(e, LS_EXIT_FAIL, "%s: %s", folder, strerror(errno));
    for (struct dirent *f; (f = readdir(d)) != NULL;)
        if (update_of(f->d_name) >= 0)
            note(s, update_of(f->d_name));
    closedir(d);
    set_path(s, 0);
    return ls_out_check(s->path, e);
}

/* The file lies in the folder. */
static bool is_here(const LsSaver *s, const char *file)
{
    char folder[LS_PATH];
    struct stat a, b;
    snprintf(folder, sizeof folder, "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    return stat(s->folder, &a) == 0 && stat(slash != NULL ? folder : ".", &b) == 0
           && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool remove_later(LsSaver *s, int64_t than, LsError *e)
{
    DIR *d = opendir(s->folder);
    int n = 0;
    bool ok = d != NULL;
    for (struct dirent *f; ok && (f = readdir(d)) != NULL;)
        if (update_of(f->d_name) > than
            || (than < 0 && strcmp(f->d_name, "best.safetensors") == 0)) {
            ok = unlinkat(dirfd(d), f->d_name, 0) == 0;
            n++;
        }
    ok = ok
         || ls_fail(e, LS_EXIT_FAIL, "%s: --overwrite cannot remove checkpoints: %s", s->folder,
                    strerror(errno));
    if (d != NULL)
        closedir(d);
    if (ok)
        fprintf(stderr, "note: removed %d checkpoint%s of another run from %s\n", n,
                n == 1 ? "" : "s", s->folder);
    return ok;
}

bool ls_saver_is_free(LsSaver *s, const char *from, int64_t at, bool overwrite, LsError *e)
{
    /* the last that belongs to this run */
    const int64_t own = from != NULL && is_here(s, from) ? at : -1;
    const int64_t last = s->count > 0 ? s->update[s->count - 1] : -1;
    char best[LS_PATH], words[40] = "";
    const bool other_best = own < 0 && access(ls_saver_best(s, best), F_OK) == 0;
    if (last <= own && !other_best)
        return true;
    if (overwrite)
        return remove_later(s, own, e);
    if (last > own)
        snprintf(words, sizeof words, ", up to step %" PRId64, last);
    return ls_fail(e, LS_EXIT_USAGE,
                   "--save=%s holds checkpoints of another run%s, and --resume=auto would not know "
                   "them from this run's. Name another folder; or continue that run by "
                   "--resume=auto; or let --overwrite remove them",
                   s->folder, words);
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
