/* runtime/cuda/cublaslt_choice.c -- see cublaslt_choice.h. */
#include "runtime/cuda/cublaslt_choice.h"

#include "runtime/base/file.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = sizeof (cublasLtMatmulAlgo_t) / sizeof (uint64_t) };

const LsChoice *ls_choices_find(const LsChoices *c, const char *key)
{
    for (int k = 0; k < c->nrow; k++)
        if (strcmp(c->row[k].key, key) == 0)
            return &c->row[k];
    return NULL;
}

static bool append(LsChoices *c, const LsChoice *choice)
{
    if (c->nrow == c->cap) {
        int cap = c->cap > 0 ? 2 * c->cap : 32;
        LsChoice *row = realloc(c->row, (size_t)cap * sizeof *row);
        if (row == NULL)
            return false;
        c->row = row;
        c->cap = cap;
    }
    c->row[c->nrow++] = *choice;
    return true;
}

void ls_choices_put(LsChoices *c, const LsChoice *choice)
{
    LsChoice *old = (LsChoice *)ls_choices_find(c, choice->key);
    if (old != NULL)
        *old = *choice;
    else if (!append(c, choice))
        return;
    c->changed = true;
}

/* Parses a line of the file; false: invalid. */
static bool read_line(char *line, LsChoice *to)
{
    char *key = strtok(line, "\t"), *words = strtok(NULL, "\t"), *kind = strtok(NULL, "\t\n");
    if (key == NULL || words == NULL || kind == NULL || strlen(key) >= sizeof to->key)
        return false;
    *to = (LsChoice){.tuned = strcmp(kind, "tuned") == 0};
    strcpy(to->key, key);
    for (int k = 0; k < WORDS; k++) {
        char *end;
        to->algo.data[k] = strtoull(words, &end, 16);
        if (end == words)
            return false;
        words = end;
    }
    return true;
}

static void read_all(LsChoices *c)
{
    char line[LS_CHOICE_KEY + 256];
    LsChoice row;
    FILE *from = fopen(c->path, "r");
    if (from == NULL)
        return;
    while (fgets(line, sizeof line, from) != NULL)
        if (read_line(line, &row) && ls_choices_find(c, row.key) == NULL)
            append(c, &row);
    fclose(from);
}

/* Creates the folder and its parent. */
static void make_folder(const char *folder)
{
    char up[4096];
    snprintf(up, sizeof up, "%s", folder);
    char *slash = strrchr(up, '/');
    if (slash != NULL && slash != up) {
        *slash = '\0';
        mkdir(up, 0777);
    }
    mkdir(folder, 0777);
}

void ls_choices_open(LsChoices *c, const char *folder, const char *library, const char *device)
{
    char name[160];
    *c = (LsChoices){0};
    if (folder == NULL || strlen(folder) > sizeof c->path - sizeof name - 2)
        return;
    snprintf(name, sizeof name, "%.70s-%.70s", library, device);
    for (char *s = name; *s != '\0'; s++)
        *s = isalnum((unsigned char)*s) || *s == '.' ? *s : '-';
    make_folder(folder);
    snprintf(c->path, sizeof c->path, "%s/%s.txt", folder, name);
    read_all(c);
}

/* Writes through a temporary file per process: of programs that end at the same time, each writes a
 * whole file. */
static void write_all(const LsChoices *c)
{
    LsError ignored = {0};
    char own[sizeof c->path + 24];
    LsOut *o = malloc(sizeof *o);
    snprintf(own, sizeof own, "%s.%ld", c->path, (long)getpid());
    if (o == NULL || !ls_out_open(o, own, &ignored)) {
        free(o);
        return;
    }
    for (int k = 0; k < c->nrow; k++) {
        char line[LS_CHOICE_KEY + 256];
        int n = snprintf(line, sizeof line, "%s\t", c->row[k].key);
        for (int w = 0; w < WORDS; w++)
            n += snprintf(line + n, sizeof line - (size_t)n, "%s%" PRIx64, w > 0 ? " " : "",
                          (uint64_t)c->row[k].algo.data[w]);
        n += snprintf(line + n, sizeof line - (size_t)n, "\t%s\n",
                      c->row[k].tuned ? "tuned" : "asked");
        ls_out_write(o, line, (size_t)n);
    }
    if (ls_out_commit(o, &ignored) && rename(own, c->path) != 0)
        unlink(own);
    free(o);
}

void ls_choices_close(LsChoices *c)
{
    if (c->changed && c->path[0] != '\0')
        write_all(c);
    free(c->row);
    *c = (LsChoices){0};
}
