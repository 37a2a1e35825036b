/* runtime/cuda/plan_cache.c -- see plan_cache.h. */
#include "runtime/cuda/plan_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fnv64.h"

#define HEAD "lowerset-conv-plans 1\n"
enum { MOST_BYTES = 64 << 20, SUM = 16 };       /* limit of the file; hexadecimal digits of a
                                                 * checksum */

typedef struct Entry { char *key, *value; uint64_t hash; } Entry;

struct LsPlanCache {
    char path[4200];            /* "": no file */
    Entry *entry;
    int nentry, cap;
    bool changed;
};

static uint64_t hash_text(uint64_t h, const char *s) { return ls_fnv64(h, s, strlen(s)); }

static uint64_t hash_of(const char *key) { return hash_text(LS_FNV64, key); }

static uint64_t checksum(const char *key, const char *value)
{
    return hash_text(hash_text(hash_of(key), "\t"), value);
}

const char *ls_plan_cache_folder(char *text, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = snprintf(text, size, "%s/lowerset", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(text, size, "%s/.cache/lowerset", home);
    return n >= 0 && (size_t)n < size ? text : NULL;
}

static Entry *entry_of(const LsPlanCache *c, const char *key)
{
    uint64_t hash = hash_of(key);
    for (int k = 0; k < c->nentry; k++)
        if (c->entry[k].hash == hash && strcmp(c->entry[k].key, key) == 0)
            return &c->entry[k];
    return NULL;
}

/* Adds copies; does nothing when out of memory. */
static void keep(LsPlanCache *c, const char *key, const char *value)
{
    Entry *old = entry_of(c, key);
    char *copy = strdup(value);
    if (copy == NULL)
        return;
    if (old != NULL) {
        free(old->value);
        old->value = copy;
        return;
    }
    if (c->nentry == c->cap) {
        int cap = c->cap > 0 ? 2 * c->cap : 64;
        Entry *more = realloc(c->entry, (size_t)cap * sizeof *more);
        if (more == NULL) {
            free(copy);
            return;
        }
        c->entry = more;
        c->cap = cap;
    }
    char *name = strdup(key);
    if (name == NULL)
        free(copy);
    else
        c->entry[c->nentry++] = (Entry){name, copy, hash_of(key)};
}

/* "SUM\tKEY\tVALUE", without the line break. */
static void read_line(LsPlanCache *c, char *line)
{
    char *end, *key = strchr(line, '\t');
    char *value = key != NULL ? strchr(key + 1, '\t') : NULL;
    if (value == NULL || key - line != SUM || strchr(value + 1, '\t') != NULL)
        return;
    *key++ = '\0';
    *value++ = '\0';
    uint64_t sum = strtoull(line, &end, 16);
    if (*end == '\0' && sum == checksum(key, value) && entry_of(c, key) == NULL)
        keep(c, key, value);
}

static void read_all(LsPlanCache *c)
{
    struct stat st;
    FILE *f = fopen(c->path, "rb");
    if (f == NULL)
        return;
    bool fits = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES;
    char *text = fits ? malloc((size_t)st.st_size + 1) : NULL;
    if (text != NULL) {
        size_t n = fread(text, 1, (size_t)st.st_size, f);
        text[n] = '\0';
        char *at = strncmp(text, HEAD, strlen(HEAD)) == 0 ? text + strlen(HEAD) : text + n;
        for (char *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1) {
            *stop = '\0';
            read_line(c, at);
        }
    }
    free(text);
    fclose(f);
}

LsPlanCache *ls_plan_cache_open(const char *folder, const char *name)
{
    LsPlanCache *c = calloc(1, sizeof *c);
    if (c == NULL || folder == NULL)
        return c;
    int n = snprintf(c->path, sizeof c->path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n + 31 > sizeof c->path)
        c->path[0] = '\0';
    else
        read_all(c);
    return c;
}

const char *ls_plan_cache_find(const LsPlanCache *c, const char *key)
{
    const Entry *e = entry_of(c, key);
    return e != NULL ? e->value : NULL;
}

void ls_plan_cache_put(LsPlanCache *c, const char *key, const char *value)
{
    if (strpbrk(key, "\t\n") != NULL || strpbrk(value, "\t\n") != NULL)
        return;
    keep(c, key, value);
    c->changed = true;
}

/* Creates the folder of the file and its parent. */
static void make_folders(const char *path)
{
    char dir[sizeof ((LsPlanCache *)0)->path];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = '\0';
    char *last = strrchr(dir, '/');
    if (last != NULL && last != dir) {
        *last = '\0';
        mkdir(dir, 0777);
        *last = '/';
    }
    mkdir(dir, 0777);
}

static void write_all(const LsPlanCache *c)
{
    char tmp[sizeof c->path + 24];
    make_folders(c->path);
    snprintf(tmp, sizeof tmp, "%s.%ld", c->path, (long)getpid());
    FILE *f = fopen(tmp, "wb");
    if (f == NULL)
        return;
    fputs(HEAD, f);
    for (int k = 0; k < c->nentry; k++)
        fprintf(f, "%0*" PRIx64 "\t%s\t%s\n", SUM, checksum(c->entry[k].key, c->entry[k].value),
                c->entry[k].key, c->entry[k].value);
    bool ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(tmp, c->path) != 0)
        unlink(tmp);
}

void ls_plan_cache_close(LsPlanCache *c)
{
    if (c == NULL)
        return;
    if (c->changed && c->path[0] != '\0')
        write_all(c);
    for (int k = 0; k < c->nentry; k++) {
        free(c->entry[k].key);
        free(c->entry[k].value);
    }
    free(c->entry);
    free(c);
}
