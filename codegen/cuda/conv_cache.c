/* codegen/cuda/conv_cache.c */
#include "codegen/cuda/conv_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "lowerset-conv-plans 1\n"
enum { MOST_BYTES = 64 << 20, SUM = 16 };       /* of a file; hexadecimal digits of a checksum */

typedef struct Entry { const char *key, *value; uint64_t hash; } Entry;

struct LsConvCache {
    LsArena *a;
    const char *path;           /* NULL: nowhere */
    Entry *entry; uint32_t nentry, cap;
    bool changed;
};

static uint64_t hash_text(uint64_t h, const char *s)
{
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_of(const char *key)
{
    return hash_text(UINT64_C(0xcbf29ce484222325), key);
}

static uint64_t checksum(const char *key, const char *value)
{
    return hash_text(hash_text(hash_of(key), "\t"), value);
}

static const char *cache_path(LsArena *a, const char *name)
{
    const char *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *dir = root != NULL && root[0] == '/' ? root
                      : home != NULL && home[0] == '/' ? ls_arena_printf(a, "%s/.cache", home)
                                                       : NULL;
    return dir != NULL ? ls_arena_printf(a, "%s/lowerset/%s", dir, name) : NULL;
}

static void add(LsConvCache *c, const char *key, const char *value)
{
    c->entry = ls_arena_grow(c->a, c->entry, c->nentry, c->nentry + 1, sizeof *c->entry, &c->cap);
    c->entry[c->nentry++] = (Entry){key, value, hash_of(key)};
}

/* "SUM\tKEY\tVALUE", the line break gone. */
static void read_line(LsConvCache *c, char *line)
{
    char *end, *key = strchr(line, '\t');
    char *value = key != NULL ? strchr(key + 1, '\t') : NULL;
    if (value == NULL || key - line != SUM || strchr(value + 1, '\t') != NULL)
        return;
    *key++ = '\0';
    *value++ = '\0';
    uint64_t sum = strtoull(line, &end, 16);
    if (*end == '\0' && sum == checksum(key, value) && ls_conv_cache_find(c, key) == NULL)
        add(c, key, value);
}

LsConvCache *ls_conv_cache_open(LsArena *a, const char *name)
{
    LsConvCache *c = ls_arena_alloc(a, 1, sizeof *c);
    c->a = a;
    c->path = cache_path(a, name);
    FILE *f = c->path != NULL ? fopen(c->path, "rb") : NULL;
    struct stat st;
    if (f == NULL)
        return c;
    if (fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES) {
        char *text = ls_arena_alloc(a, (size_t)st.st_size + 1, 1);
        size_t n = fread(text, 1, (size_t)st.st_size, f);
        text[n] = '\0';
        char *at = strncmp(text, HEAD, strlen(HEAD)) == 0 ? text + strlen(HEAD) : text + n;
        for (char *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1) {
            *stop = '\0';
            read_line(c, at);
        }
    }
    fclose(f);
    return c;
}

const char *ls_conv_cache_find(const LsConvCache *c, const char *key)
{
    uint64_t hash = hash_of(key);
    for (uint32_t k = 0; k < c->nentry; k++)
        if (c->entry[k].hash == hash && strcmp(c->entry[k].key, key) == 0)
            return c->entry[k].value;
    return NULL;
}

void ls_conv_cache_put(LsConvCache *c, const char *key, const char *value)
{
    if (strpbrk(key, "\t\n") != NULL || strpbrk(value, "\t\n") != NULL)
        return;
    add(c, ls_arena_strdup(c->a, key), ls_arena_strdup(c->a, value));
    c->changed = true;
}

/* The folder of the file, and the one that folder is in. */
static void make_folders(LsConvCache *c)
{
    char *dir = ls_arena_strdup(c->a, c->path);
    *strrchr(dir, '/') = '\0';
    char *last = strrchr(dir, '/');
    *last = '\0';
    mkdir(dir, 0777);
    *last = '/';
    mkdir(dir, 0777);
}

void ls_conv_cache_save(LsConvCache *c)
{
    if (!c->changed || c->path == NULL)
        return;
    make_folders(c);
    const char *tmp = ls_arena_printf(c->a, "%s.%ld", c->path, (long)getpid());
    FILE *f = fopen(tmp, "wb");
    if (f == NULL)
        return;
    fputs(HEAD, f);
    for (uint32_t k = 0; k < c->nentry; k++)
        fprintf(f, "%0*" PRIx64 "\t%s\t%s\n", SUM, checksum(c->entry[k].key, c->entry[k].value),
                c->entry[k].key, c->entry[k].value);
    bool ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(tmp, c->path) != 0)
        unlink(tmp);
    c->changed = false;
}
