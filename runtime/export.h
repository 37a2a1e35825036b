/* runtime/export.h -- --export: the evaluation form of the model with the trained weights. */
#ifndef LS_RUNTIME_EXPORT_H
#define LS_RUNTIME_EXPORT_H

#include "runtime/memory.h"

bool ls_export(const LsMemory *m, const char *path, LsError *e);

#endif
