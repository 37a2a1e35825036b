/* compiler/onnx/onnx_caches.h -- inputs with the keys and values of past tokens, which files for
 * generating text have.
 *
 * Training begins without a past: unless an option gives their length, these inputs have no tokens,
 * the program does not have them, and outputs that extend them are left out. Masks are as long as
 * the sequence then. */
#ifndef LS_COMPILER_ONNX_ONNX_CACHES_H
#define LS_COMPILER_ONNX_ONNX_CACHES_H

#include "compiler/onnx/import_state.h"
#include "compiler/onnx_file/onnx_wire.h"

/* The axis of past tokens, whose length the file leaves open; -1: the input is no cache. */
int ls_cache_axis(const Onnx__ValueInfoProto *p);
/* A cache whose length no option gives. */
bool ls_cache_is_empty(const LsImportOptions *o, const Onnx__ValueInfoProto *p);
bool ls_cache_any(const LsImportOptions *o, const Onnx__GraphProto *g);
/* A switch between a part with caches and one without, in files that hold both. */
bool ls_cache_is_switch(const Onnx__ValueInfoProto *p);
/* The number of past and new tokens together, by the name of a dimension. */
bool ls_cache_is_total(const char *symbol);
/* The input, [N,T] or [N,T,C], whose second dimension is the number of new tokens; NULL: none
 * is. */
const Onnx__ValueInfoProto *ls_cache_tokens(const Onnx__GraphProto *g);
/* An output that is a cache with the new tokens, by its name. */
bool ls_cache_is_extended(const char *output);
/* Warns of what became of caches. */
void ls_onnx_hint_caches(LsImport *im);

#endif
