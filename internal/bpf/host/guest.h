/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * guest.h: what the host's guests send. A guest is a network namespace of this machine without a daemon of its own.
 * Its packets come in by a link that is for them alone; nothing of it reaches the host's own network stack. They are
 * written like the host's own and leave by the uplink, without the host forwarding anything.
 */
#ifndef SCAFFOLD_HOST_GUEST_H
#define SCAFFOLD_HOST_GUEST_H

#include "egress.h"

/* permitted: a guest speaks for itself, with services, and as a service. It is nobody else, and sends no messages. */
static __always_inline int permitted(const struct guest *g, const struct packet *p)
{
	if (in_as(&p->src) || (is_identity(&p->src) && !same(&ADDR(g->identity), &p->src)))
		return 0;
	return is_identity(&p->src) || is_service(&p->src) || is_service(&p->dst);
}

/* let_out marks a packet of a guest with the guest's number. A function: its frame is gone before egress has one. */
static __noinline int let_out(struct __sk_buff *skb)
{
	__u32 link = skb->ifindex;
	struct guest *g = bpf_map_lookup_elem(&guests, &link);
	struct packet p;

	if (!g || !g->number || parse_network(skb, l2_len, &p) || !permitted(g, &p))
		return 0;
	skb->cb[0] = g->number;
	return 1;
}

static __always_inline int from_guest(struct __sk_buff *skb)
{
	int verdict = let_out(skb) ? egress(skb) : TC_ACT_UNSPEC;

	return verdict == TC_ACT_UNSPEC ? drop(HOST_GUEST) : verdict;
}

#endif
