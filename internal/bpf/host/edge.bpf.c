//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* edge.bpf.c: the host's edge on one uplink. docs/protocol.md §2-4. */
#include "maps.h"
#include "drop.h"

/* Types that only Go needs by name. */
const struct event *unused_event __attribute__((unused));
const enum host_reason *unused_reason __attribute__((unused));

SEC("tcx/egress")
int edge_egress(struct __sk_buff *skb)
{
	struct packet p;

	if (parse_network(skb, l2_len, &p))
		return TC_ACT_UNSPEC;
	return p.src.hi == identities ? drop(HOST_LEAK) : TC_ACT_UNSPEC;
}

SEC("tcx/ingress")
int edge_ingress(struct __sk_buff *skb)
{
	struct packet p;

	if (parse_network(skb, l2_len, &p))
		return TC_ACT_UNSPEC;
	return p.dst.hi == identities ? drop(HOST_NOT_RESOLVED) : TC_ACT_UNSPEC;
}

char __license[] SEC("license") = "Dual BSD/GPL";
