/* runtime/data/class_names.h -- what the classes of a label are called. */
#ifndef LS_RUNTIME_DATA_CLASS_NAMES_H
#define LS_RUNTIME_DATA_CLASS_NAMES_H

#include <stdint.h>
#include <stdio.h>

/* name[c]: of class c, UTF-8; they live as long as the dataset. */
typedef struct LsClassNames { int64_t n; const char *const *name; } LsClassNames;

enum { LS_CLASS_NUMBER = 24 };
/* The name of class c, or its number, which is written to `text`. */
static inline const char *ls_class_called(const LsClassNames *n, int64_t c,
                                          char text[LS_CLASS_NUMBER])
{
    if (c < n->n)
        return n->name[c];
    snprintf(text, LS_CLASS_NUMBER, "%lld", (long long)c);
    return text;
}

#endif
