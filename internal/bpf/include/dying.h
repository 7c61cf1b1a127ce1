/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* dying.h: what the socket hooks tell the host's edge, by the packets themselves. */
#ifndef SCAFFOLD_DYING_H
#define SCAFFOLD_DYING_H

/*
 * The mark of a socket whose process was killed or failed. Its packets carry it past the edge, which then knows
 * that a FIN is the kernel's and not the end of an answer. docs/protocol.md §3.6.
 */
#define MARK_DYING 0x5cafdead

#endif
