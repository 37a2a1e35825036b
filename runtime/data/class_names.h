/* runtime/data/class_names.h -- what the classes of a label are called. */
#ifndef LS_RUNTIME_DATA_CLASS_NAMES_H
#define LS_RUNTIME_DATA_CLASS_NAMES_H

#include <stdint.h>

/* name[c]: of class c, UTF-8, in the memory of the data's file. */
typedef struct LsClassNames { int64_t n; const char *const *name; } LsClassNames;

#endif
