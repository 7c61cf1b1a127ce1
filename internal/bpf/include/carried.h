/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* carried.h: what an agent of boost tells the edge of the host that it runs on, by the packets themselves. */
#ifndef SCAFFOLD_CARRIED_H
#define SCAFFOLD_CARRIED_H

/*
 * The mark of what an agent sends in the name of another machine: the end hosts that it carries connections for. Who may
 * set a mark (CAP_NET_RAW, CAP_NET_ADMIN) sends frames past all programs, too (PACKET_QDISC_BYPASS). internal/boost/ends has the
 * same number.
 */
#define MARK_CARRIED 0x5cb3

#endif
