/* scheduler/cuts/pipeline_schedules.c -- see the header. */
#include "scheduler/cuts/pipeline_schedules.h"

const char *const ls_order_name[LS_ORDERS + 1] = {"gpipe", "1f1b", "zb", NULL};

static void add(LsRankOrder *o, LsPipePhase phase, uint32_t micro)
{
    o->step[o->n++] = (LsRankStep){phase, micro};
}

static void add_gpipe(LsRankOrder *o, uint32_t micros)
{
    for (uint32_t m = 0; m < micros; m++)
        add(o, LS_PHASE_F, m);
    for (uint32_t m = 0; m < micros; m++) {
        add(o, LS_PHASE_B, m);
        add(o, LS_PHASE_W, m);
    }
}

/* `ahead` times F before the first B, and W `late` micro-batches behind B. */
static void add_alternating(LsRankOrder *o, uint32_t micros, uint32_t ahead, uint32_t late)
{
    uint32_t f = 0;
    for (; f < ahead && f < micros; f++)
        add(o, LS_PHASE_F, f);
    for (uint32_t b = 0; b < micros; b++) {
        add(o, LS_PHASE_B, b);
        if (b >= late)
            add(o, LS_PHASE_W, b - late);
        if (f < micros)
            add(o, LS_PHASE_F, f++);
    }
    for (uint32_t w = micros > late ? micros - late : 0; w < micros; w++)
        add(o, LS_PHASE_W, w);
}

LsRankOrder ls_rank_order(LsArena *arena, LsOrderKind kind, uint32_t rank, uint32_t ranks,
                          uint32_t micros)
{
    LsRankOrder o = {.step = ls_arena_alloc(arena, 3u * (size_t)micros + 1, sizeof *o.step)};
    if (kind == LS_ORDER_GPIPE)
        add_gpipe(&o, micros);
    else
        add_alternating(&o, micros, ranks - rank, kind == LS_ORDER_ZB ? rank : 0);
    return o;
}

uint32_t ls_rank_order_slots(const LsRankOrder *order, LsPipePhase end)
{
    uint32_t held = 0, most = 0;
    for (uint32_t k = 0; k < order->n; k++) {
        if (order->step[k].phase == LS_PHASE_F && ++held > most)
            most = held;
        held -= order->step[k].phase == end;
    }
    return most;
}
