/* models/zoo_image.c -- see the header. */
#include "models/zoo_image.h"

LsTensor ls_zoo_image(LsBuild *b, const LsModelRequest *r)
{
    LsTensor x = {.rank = 4, .dim = {0, r->value[LS_OPT_CHANNELS], r->value[LS_OPT_SIZE],
                                     r->value[LS_OPT_SIZE]}};
    return ls_build_input(b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, x);
}
