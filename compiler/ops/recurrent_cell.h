/* compiler/ops/recurrent_cell.h -- one step of the cells of RNN, GRU and LSTM, as IR nodes. */
#ifndef LS_COMPILER_OPS_RECURRENT_CELL_H
#define LS_COMPILER_OPS_RECURRENT_CELL_H

#include "compiler/ops/recurrent_activation.h"

/* The state between two steps, each [B,H]; none: zeros. */
typedef struct LsCellState { LsValueId h, c; } LsCellState;

typedef struct LsCell {         /* one direction of one node */
    LsCtx *cx;
    LsGraph *g;
    int64_t hidden;             /* H */
    LsActivation act[3];        /* f, g, h of ONNX's equations */
    double clip;                /* inputs of the gates' activations are clamped to [-clip, clip]; 0:
                                 * no clipping */
    bool input_forget;          /* LSTM: the forget gate is 1 - the input gate */
    bool linear_before_reset;   /* GRU */
    LsValueId r;                /* [G H,H], gates in ONNX's order: RNN i, GRU zrh, LSTM iofc */
    LsValueId bias;             /* [3 H], GRU with linear_before_reset: added to h r^T; none:
                                 * zeros */
    LsValueId peephole[3];      /* [H], LSTM: from the cell state to gates i, o, f; none: zeros */
} LsCell;

/* x: [B,G H], W x and the biases of this step. Returns the state after it (c: LSTM alone). */
typedef LsCellState LsCellStep(const LsCell *cell, LsValueId x, LsCellState before);
LsCellStep ls_rnn_step, ls_gru_step, ls_lstm_step;

#endif
