/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uplink.h: packets leave by the uplink of their flow, whichever the routing table chose. */
#ifndef SCAFFOLD_HOST_UPLINK_H
#define SCAFFOLD_HOST_UPLINK_H

#include "flow.h"

#ifndef AF_INET6
#define AF_INET6 10
#endif

/*
 * depart sends a packet, its wire addresses written, by another uplink. The program there lets it pass (from_host).
 * The helper wants an Ethernet header to take off; the kernel puts on what the other link needs. A packet that
 * waits for its neighbour is sent to the one of its route, which is another link's: so it must not have one. Of
 * what takes the route away, tunnel metadata that nobody reads is the least.
 */
static __noinline int depart(struct __sk_buff *skb, const struct slot *s)
{
	struct bpf_redir_neigh hop = { .nh_family = AF_INET6 };
	struct bpf_tunnel_key none = {};
	__u32 ifindex = s->ifindex;

	ADDR(hop.ipv6_nh) = ADDR(s->router);
	if (!l2_len && bpf_skb_change_head(skb, ETH_HLEN, 0))
		return drop(HOST_REWRITE);
	if (bpf_skb_set_tunnel_key(skb, &none, sizeof(none), 0))
		return drop(HOST_REWRITE);
	if (!guest_of(skb))
		count(HOST_ELSEWHERE);
	return bpf_redirect_neigh(ifindex, &hop, sizeof(hop), 0);
}

/* by_slot lets the packet go on, or sends it by the slot's uplink where that is another one, and up. */
static __always_inline int by_slot(struct __sk_buff *skb, const struct place *place, __u32 slot)
{
	if (slot >= MAX_SLOTS || !place->slots[slot].ifindex || place->slots[slot].ifindex == skb->ifindex)
		return TC_ACT_UNSPEC;
	return depart(skb, &place->slots[slot]);
}

/* swallow ends a packet that the kernel is to think sent; TC_ACT_STOLEN would mean "go on" to a tcx link. */
static __always_inline int swallow(__u32 reason)
{
	count(reason);
	return bpf_redirect(0, 0);
}

/* message_out passes what the daemon made, by the uplink of its source. */
static __noinline int message_out(struct __sk_buff *skb, const struct packet *p)
{
	struct place *place = whereabouts();

	if (!place)
		return TC_ACT_UNSPEC;
	for (__u32 i = 0; i < MAX_SLOTS; i++)
		if (place->slots[i].ifindex && *(__u64 *)place->slots[i].locator == p->src.hi)
			return by_slot(skb, place, i);
	return TC_ACT_UNSPEC;
}

/* is_message: from a host stack. To a service, it is an unresolved RSYN. */
static __always_inline int is_message(const struct packet *p)
{
	return p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT) &&
	       (!is_service(&p->dst) || (p->sport == p->dport && in_as(&p->src)));
}

/* live says whether a socketID is one of this host's flows. */
static __always_inline int live(__u64 id)
{
	return bpf_map_lookup_elem(&ingress_flows, &id) || bpf_map_lookup_elem(&ingress_half, &id);
}

#endif
