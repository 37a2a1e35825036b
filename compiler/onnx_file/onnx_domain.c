/* compiler/onnx_file/onnx_domain.c -- see the header. */
#include "compiler/onnx_file/onnx_domain.h"

#include <string.h>

const char *ls_onnx_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int ls_onnx_version(Onnx__OperatorSetIdProto *const *list, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ls_onnx_domain(list[i]->domain), ls_onnx_domain(domain)) == 0) {
            int64_t v = list[i]->version;
            return v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : (int)v;
        }
    return 0;
}
