/* compiler/onnx/onnx_attr.h -- attributes and compile-time operands of a node of the file. */
#ifndef LS_COMPILER_ONNX_ONNX_ATTR_H
#define LS_COMPILER_ONNX_ONNX_ATTR_H

#include "compiler/onnx/onnx_row.h"

/* Attributes. Absent: the default. A wrong type is reported and poisons the
 * node: the importer fails it after build. */
bool ls_onnx_has(const LsOnnxNode *n, const char *attr);
int64_t ls_onnx_int(const LsOnnxNode *n, const char *attr, int64_t otherwise);
double ls_onnx_float(const LsOnnxNode *n, const char *attr, double otherwise);
const char *ls_onnx_string(const LsOnnxNode *n, const char *attr, const char *otherwise);
/* Number of integers, at most max; -1: absent. More than max is an error and gives -1. */
int ls_onnx_ints(const LsOnnxNode *n, const char *attr, int max, int64_t out[]);
int ls_onnx_floats(const LsOnnxNode *n, const char *attr, int max, double out[]);
/* Likewise for texts. */
int ls_onnx_strings(const LsOnnxNode *n, const char *attr, int max, const char *out[]);
/* Number of elements of a list attribute; 0: absent, or no list. */
int ls_onnx_length(const LsOnnxNode *n, const char *attr);
/* The tensor attribute as a constant value; none: absent. */
LsValueId ls_onnx_tensor(const LsOnnxNode *n, const char *attr);

/* Operand k as compile-time constants: the number read, -1 when the operand is absent, -2 (reported
 * as LS_E_NOT_CONST) when it is computed at run time. An initializer read this way is a setting: it
 * becomes LS_V_CONST and is not trained. */
int ls_onnx_const_ints(LsOnnxNode *n, int k, int max, int64_t out[]);
int ls_onnx_const_reals(LsOnnxNode *n, int k, int max, double out[]);

/* An axis from the file (-rank .. rank-1) made non-negative; reports and
 * returns -1 when out of range. */
int ls_onnx_axis(LsOnnxNode *n, int64_t axis, int rank);
/* ls_error at this node. */
__attribute__((format(printf, 4, 5)))
bool ls_onnx_error(const LsOnnxNode *n, LsErrId id, const char *hint, const char *fmt, ...);

#endif
