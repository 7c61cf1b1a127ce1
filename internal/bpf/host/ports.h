/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ports.h: which flow a client's datagram belongs to, docs/protocol.md §3.4. Each port that a socket asks has a flow of its
 * own, since it may be served elsewhere. A server may answer from another port than was asked (TFTP does), and what the
 * socket then sends there is for who answered. At the server's end all such ports are one flow.
 */
#ifndef SCAFFOLD_HOST_PORTS_H
#define SCAFFOLD_HOST_PORTS_H

#include "flow.h"

static const struct answer_ports no_ports; /* too big for the stack */

/* answer_port is written and read in one piece: other CPUs do the same. The flow's birth tells it from one that ended. */
static __always_inline __u64 answer_port(__u16 from, __u16 asked, const __u8 *birth)
{
	return (__u64)*(__u32 *)(birth + 4) << 32 | (__u32)asked << 16 | from;
}

/*
 * note_port notes from which port a flow is answered: a client's by its peer, a server's by its programs. A client's socket
 * may ask several ports of the service, so that its flows share an entry.
 */
static __noinline int note_port(const struct flow_key *flow, const __u8 *birth, __u32 role, __u16 from)
{
	struct flow_key key __attribute__((aligned(8))) = *flow;
	struct answer_ports *all;
	__u16 asked = 0;
	__u64 v;

	if (!from)
		return 0;
	if (role == ROLE_CLIENT) {
		asked = PORT(key.rport);
		PORT(key.rport) = 0;
		if (!asked) /* of the program before: it has all ports */
			return 0;
	}
	v = answer_port(from, asked, birth);
	all = bpf_map_lookup_elem(&answers, &key);
	if (!all) {
		bpf_map_update_elem(&answers, &key, &no_ports, BPF_NOEXIST);
		all = bpf_map_lookup_elem(&answers, &key);
	}
	if (!all)
		return -1;
	for (int i = 0; i < ANSWER_PORTS; i++) {
		__u64 at = all->port[i];

		if ((__u16)at != from)
			continue;
		if (at != v)
			all->port[i] = v;
		return 0;
	}
	all->port[all->next++ & (ANSWER_PORTS - 1)] = v;
	return 0;
}

/* answers_from says whether a server's flow was answered from the port by a program here. */
static __noinline int answers_from(const struct ingress_flow *f, __u16 port)
{
	struct answer_ports *all = bpf_map_lookup_elem(&answers, &f->key);
	__u64 v = answer_port(port, 0, f->birth);

	for (int i = 0; all && i < ANSWER_PORTS; i++)
		if (all->port[i] == v)
			return 1;
	return 0;
}

/* forget_answers: whoever answered is the flow's peer no more. */
static __noinline int forget_answers(const struct flow_key *of, const struct egress_flow *f)
{
	struct flow_key key __attribute__((aligned(8))) = *of;
	__u64 v = answer_port(0, PORT(key.rport), f->birth);
	struct answer_ports *all;

	PORT(key.rport) = 0;
	all = bpf_map_lookup_elem(&answers, &key);
	for (int i = 0; all && i < ANSWER_PORTS; i++)
		if ((all->port[i] & ~0xffffULL) == v)
			all->port[i] = 0;
	return 0;
}

/* answered_from finds the flow whose peer has answered from the key's port; the key becomes that flow's. */
static __always_inline struct egress_flow *answered_from(struct flow_key *key)
{
	__u16 port = PORT(key->rport);
	struct answer_ports *all;
	struct egress_flow *f = 0;
	__u64 v = 0;

	if (!port)
		return 0;
	PORT(key->rport) = 0;
	all = bpf_map_lookup_elem(&answers, key);
	for (int i = 0; all && i < ANSWER_PORTS; i++) {
		v = all->port[i];
		if ((__u16)v == port)
			break;
		v = 0;
	}
	if (v) {
		PORT(key->rport) = v >> 16;
		f = bpf_map_lookup_elem(&egress_flows, key);
	}
	if (f && f->state == STATE_BOUND && *(__u32 *)(f->birth + 4) == v >> 32)
		return f;
	PORT(key->rport) = port;
	return 0;
}

/*
 * not_bound is the flow of a port whose own flow, if there is one, nobody has answered yet. Who has spoken to the socket from
 * there comes first: a program writes to who wrote to it. A flow of the program before has all ports.
 */
static __noinline struct egress_flow *not_bound(struct flow_key *key, struct egress_flow *own)
{
	struct egress_flow *f = answered_from(key);
	__u16 port = PORT(key->rport);

	if (f)
		return f;
	if (own)
		return own;
	PORT(key->rport) = 0;
	f = bpf_map_lookup_elem(&egress_flows, key);
	if (!f)
		PORT(key->rport) = port;
	return f;
}

/* client_flow finds the flow of what a client's socket sends, and makes the key the flow's own. */
static __always_inline struct egress_flow *client_flow(struct flow_key *key)
{
	struct egress_flow *own = bpf_map_lookup_elem(&egress_flows, key);

	if (key->proto != PROTO_UDP)
		return own;
	if (own && (own->state == STATE_BOUND || own->datagrams == DATAGRAMS_UNBOUND))
		return own;
	return not_bound(key, own);
}

#endif
