/* compiler/onnx/onnx_decisions.c -- texts for the decisions. */
#include "compiler/onnx/onnx_decisions.h"

const char *const ls_role_name[LS_NROLES] = {"", "trained", "frozen", "statistic", "constant"};

const char *const ls_bn_by_text[LS_NBN_BY] = {
    [LS_BN_BY_TRAIN] = "the batch's statistics (--bn=train)",
    [LS_BN_BY_FROZEN] = "running statistics, which stay as they are (--bn=frozen)",
    [LS_BN_BY_FORM] = "the batch's statistics (training form)",
    [LS_BN_BY_TRACE] =
        "the batch's statistics (exported in training mode, by the exporter's notes)",
    [LS_BN_BY_NODES] = "statistics that nodes of the file compute",
    [LS_BN_BY_RUNNING] = "running statistics, which stay as they are (inference form)",
};
