//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * edge.bpf.c: the host's edge on one uplink, docs/protocol.md §2-4. TC_ACT_UNSPEC lets other programs and the
 * kernel go on with the packet.
 */
#include "guest.h"
#include "ingress.h"
#include "steer.h"

/* Types that only Go needs by name. */
const struct event *unused_event __attribute__((unused));
const enum host_reason *unused_reason __attribute__((unused));

SEC("tcx/egress")
int edge_egress(struct __sk_buff *skb)
{
	return egress(skb);
}

/* edge_guest stands where the packets of a guest come in. */
SEC("tcx/ingress")
int edge_guest(struct __sk_buff *skb)
{
	return from_guest(skb);
}

SEC("tcx/ingress")
int edge_ingress(struct __sk_buff *skb)
{
	return ingress(skb);
}

/*
 * edge_steer does the first mark steps of the map; BPF_PROG_RUN runs it, no packet does. As a program of type
 * syscall it would need 6.1: before, such programs cannot use maps that are not preallocated.
 */
SEC("tc")
int edge_steer(struct __sk_buff *skb)
{
	for (__u32 i = 0; i < MAX_STEPS && i < skb->mark; i++)
		steer_one(i);
	return 0;
}

char __license[] SEC("license") = "Dual BSD/GPL";
