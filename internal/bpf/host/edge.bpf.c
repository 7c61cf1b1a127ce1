//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * edge.bpf.c: the host's edge on one uplink, docs/protocol.md §2-4. TC_ACT_UNSPEC lets other programs and the
 * kernel go on with the packet.
 */
#include "egress.h"
#include "ingress.h"

/* Types that only Go needs by name. */
const struct event *unused_event __attribute__((unused));
const enum host_reason *unused_reason __attribute__((unused));

SEC("tcx/egress")
int edge_egress(struct __sk_buff *skb)
{
	return egress(skb);
}

SEC("tcx/ingress")
int edge_ingress(struct __sk_buff *skb)
{
	return ingress(skb);
}

char __license[] SEC("license") = "Dual BSD/GPL";
