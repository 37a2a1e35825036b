/* runtime/data/class_names.h -- what the classes of a label are called. */
#ifndef LS_RUNTIME_DATA_CLASS_NAMES_H
#define LS_RUNTIME_DATA_CLASS_NAMES_H

#include <stdint.h>

/* name[c]: of class c, UTF-8; they live as long as the dataset. */
typedef struct LsClassNames { int64_t n; const char *const *name; } LsClassNames;

#endif
