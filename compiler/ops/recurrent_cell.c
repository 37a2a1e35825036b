/* compiler/ops/recurrent_cell.c -- see the header. The equations are those of ONNX's RNN, GRU and
 * LSTM. A state of zeros costs no nodes. */
#include "compiler/ops/recurrent_cell.h"

#include "compiler/fold/append.h"

static LsValueId map2(const LsCell *k, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(k->cx, k->g, op, a, b, NULL);
}

/* a + b, where none is zero. */
static LsValueId plus(const LsCell *k, LsValueId a, LsValueId b)
{
    return !ls_is(a) ? b : !ls_is(b) ? a : map2(k, LS_OP_ADD, a, b);
}

static LsValueId one_minus(const LsCell *k, LsValueId v)
{
    return map2(k, LS_OP_SUB, ls_const_real(k->cx, k->g, 1), v);
}

/* h r^T for gates from .. to - 1, plus the bias if there is one; none: zero. */
static LsValueId recurrent(const LsCell *k, LsValueId h, int from, int to, LsValueId bias)
{
    int64_t n = k->hidden;
    LsAttr at = {.gemm = {.trans_b = true, .alpha = 1}};
    if (!ls_is(h))
        return ls_is(bias) ? ls_reshape(k->cx, k->g, bias, &(LsShape){2, {1, (to - from) * n}})
                           : bias;
    LsValueId in[3] = {h, ls_slice_axis(k->cx, k->g, k->r, 0, from * n, to * n), bias};
    return ls_append(k->cx, k->g, LS_OP_MATMUL, ls_is(bias) ? 3 : 2, in, &at);
}

static LsValueId gate(const LsCell *k, LsValueId v, int from, int to)
{
    return ls_is(v) ? ls_slice_axis(k->cx, k->g, v, 1, from * k->hidden, to * k->hidden) : v;
}

static LsValueId activate(const LsCell *k, int which, LsValueId v)
{
    LsAttr at = {.scalar = {.a = -k->clip, .b = k->clip}};
    if (k->clip > 0)
        v = ls_append1(k->cx, k->g, LS_OP_CLIP, v, &at);
    return ls_activate(k->cx, k->g, &k->act[which], v);
}

LsCellState ls_rnn_step(const LsCell *k, LsValueId x, LsCellState s)
{
    LsValueId z = plus(k, x, recurrent(k, s.h, 0, 1, (LsValueId){0}));
    return (LsCellState){.h = activate(k, 0, z)};
}

LsCellState ls_gru_step(const LsCell *k, LsValueId x, LsCellState s)
{
    bool linear = k->linear_before_reset;
    LsValueId r = recurrent(k, s.h, 0, linear ? 3 : 2, k->bias), none = {0};
    LsValueId zr = plus(k, gate(k, x, 0, 2), gate(k, r, 0, 2));
    LsValueId update = activate(k, 0, gate(k, zr, 0, 1));
    LsValueId reset = activate(k, 0, gate(k, zr, 1, 2));
    LsValueId from_h = linear ? gate(k, r, 2, 3) : s.h;
    if (ls_is(from_h))
        from_h = map2(k, LS_OP_MUL, reset, from_h);
    if (!linear)
        from_h = recurrent(k, from_h, 2, 3, none);
    LsValueId new = activate(k, 1, plus(k, gate(k, x, 2, 3), from_h));
    LsValueId old = ls_is(s.h) ? map2(k, LS_OP_MUL, update, s.h) : none;
    return (LsCellState){.h = plus(k, map2(k, LS_OP_MUL, one_minus(k, update), new), old)};
}

/* Gate `at` of z, with the peephole from cell state c. */
static LsValueId lstm_gate(const LsCell *k, LsValueId z, int at, LsValueId c)
{
    LsValueId seen = {0};
    if (ls_is(k->peephole[at]) && ls_is(c))
        seen = map2(k, LS_OP_MUL, k->peephole[at], c);
    return activate(k, 0, plus(k, gate(k, z, at, at + 1), seen));
}

LsCellState ls_lstm_step(const LsCell *k, LsValueId x, LsCellState s)
{
    enum { I, O, F, C };
    LsValueId z = plus(k, x, recurrent(k, s.h, 0, 4, (LsValueId){0}));
    LsValueId input = lstm_gate(k, z, I, s.c);
    LsValueId c = map2(k, LS_OP_MUL, input, activate(k, 1, gate(k, z, C, C + 1)));
    if (ls_is(s.c)) {
        LsValueId forget = k->input_forget ? one_minus(k, input) : lstm_gate(k, z, F, s.c);
        c = plus(k, map2(k, LS_OP_MUL, forget, s.c), c);
    }
    LsValueId output = lstm_gate(k, z, O, c);
    /* never clipped, as in ONNX Runtime */
    LsValueId seen = ls_activate(k->cx, k->g, &k->act[2], c);
    return (LsCellState){.h = map2(k, LS_OP_MUL, output, seen), .c = c};
}
