/* compiler/onnx_file/onnx_domain.h -- domains of operators, and their versions in a file. */
#ifndef LS_COMPILER_ONNX_FILE_ONNX_DOMAIN_H
#define LS_COMPILER_ONNX_FILE_ONNX_DOMAIN_H

#include "onnx.pb-c.h"

/* "" for the default domain in either spelling. */
const char *ls_onnx_domain(const char *domain);
/* The version of a domain in a list of imports; 0: not imported. */
int ls_onnx_version(Onnx__OperatorSetIdProto *const *list, size_t n, const char *domain);

#endif
