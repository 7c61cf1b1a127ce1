/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* carried.h: what an agent of boost tells the edge of the host that it runs on, by the packets themselves. */
#ifndef SCAFFOLD_CARRIED_H
#define SCAFFOLD_CARRIED_H

/*
 * The mark of what an agent sends in the name of another machine: the end hosts that it carries connections for. It has none of the
 * bits by which others on a machine tell packets: kube-proxy (0x4000, 0x8000), Cilium (0x0f00), Calico (the upper half), and low
 * ones, as operators use them. internal/boost/ends has the same number.
 */
#define MARK_CARRIED 0x30b0

/*
 * The mark of sockets at which an agent serves a name for those who do (docs/boost.md). No program looks for it: the host's daemon
 * does, and tells its controller whose they are. internal/bpf/sockets and internal/boost/ends have the same number.
 */
#define MARK_NAMED 0x30b1

#endif
