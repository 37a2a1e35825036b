/* compiler/ir/diag.h -- the context of one compilation, and its diagnostics.
 *
 * The reader wrote a model, not a compiler: say where (file, node, operator), both sides of the
 * mismatch and what to do. A pass reports every bad node, then returns false. */
#ifndef LS_COMPILER_IR_DIAG_H
#define LS_COMPILER_IR_DIAG_H

#include "base/arena.h"
#include "compiler/ir/ir.h"

#define LS_ERROR_ENUM(code, exit_code, text) LS_E_##code,
typedef enum { LS_E_NONE,
#include "compiler/ir/errors.def"
    LS_NERRORS } LsErrId;
#undef LS_ERROR_ENUM

/* Exit codes of the command line: FEATURES of the README list them. */
enum { LS_EXIT_OK = 0, LS_EXIT_MODEL = 1, LS_EXIT_USAGE = 2, LS_EXIT_UNSUPPORTED = 3,
       LS_EXIT_BUDGET = 4, LS_EXIT_TOOL = 5, LS_EXIT_CHECK = 6 };

typedef struct LsCtx {          /* one compilation; the compiler has no globals */
    LsArena *arena;
    const char *model;          /* path as the user typed it */
    FILE *log;                  /* diagnostics; NULL: stderr */
    int nerror, nwarning, max_error;
    bool quiet;                 /* warnings are counted and not printed */
    LsErrId last;               /* of the last error: tests compare it */
    int exit_code;              /* of the first error, by errors.def */
    struct LsParsed *parsed;    /* the model file last read (onnx_wire.c): it is read for several
                                 * purposes */
    struct LsPackedTensors *packed;     /* weights of that file that a program keeps in few bits
                                         * (compiler/packed/packed_tensor.h); NULL: there are
                                         * none */
} LsCtx;

/* The place of a message. Any field may be absent (NULL, -1). */
typedef struct LsWhere { int64_t node; const char *name, *op; } LsWhere;

/* net.onnx: node 57 'layer2/conv1' (Conv): error LS-E0102: X has 3 channels, W takes 1
 *   hint: ...
 * Always false, so callers write: return ls_error(...). */
__attribute__((format(printf, 5, 6)))
bool ls_error(LsCtx *cx, LsWhere at, LsErrId id, const char *hint, const char *fmt, ...);
__attribute__((format(printf, 4, 5)))
void ls_warn(LsCtx *cx, LsWhere at, const char *hint, const char *fmt, ...);
static const LsWhere LS_NOWHERE __attribute__((unused)) = {-1, NULL, NULL};

/* "8x3x224x224", or "scalar". The result lives in the arena. */
const char *ls_shape_text(LsArena *a, const LsShape *s);

#endif
