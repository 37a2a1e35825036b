/* compiler/onnx/onnx_stops.h -- where no gradient flows although the operator has one: at
 * x.detach(), which files of PyTorch's newer exporter note, and where --stop-gradient says so. */
#ifndef LS_COMPILER_ONNX_ONNX_STOPS_H
#define LS_COMPILER_ONNX_ONNX_STOPS_H

#include "compiler/onnx/import_options.h"
#include "compiler/onnx/onnx_model.h"

struct LsImport;                /* import_state.h */

typedef enum { LS_STOPS_NOT, LS_STOPS_BY_NOTES, LS_STOPS_ASKED } LsStopsBy;

/* --stop-gradient names this value or node. */
bool ls_onnx_told_to_stop(const LsImportOptions *o, const char *name);

/* Whether no gradient flows through a result of that node. */
LsStopsBy ls_onnx_stops(LsArena *a, const LsImportOptions *o, const LsOnnxFlat *f);

/* Replaces the results of f, by number, by values of the same elements whose gradient is stopped,
 * where one is; notes them in im->decisions. Constants that might have become weights stay
 * constants. False after an error. */
bool ls_onnx_stop(struct LsImport *im, const LsOnnxFlat *f, LsValueId out[]);

/* Reports globs of --stop-gradient without a match. */
void ls_onnx_check_stops(struct LsImport *im);

/* Warns where notes show that a detach() was in the module, and the file has lost it. */
void ls_onnx_hint_lost_stops(struct LsImport *im);

#endif
