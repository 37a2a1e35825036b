/* runtime/base/note.h -- notes of a run: a program prints them, a library does not. */
#ifndef LS_RUNTIME_BASE_NOTE_H
#define LS_RUNTIME_BASE_NOTE_H

#include <stdio.h>

/* fprintf; nothing with to = NULL. */
#define ls_note(to, ...) ((to) != NULL ? (void)fprintf((to), __VA_ARGS__) : (void)0)

#endif
