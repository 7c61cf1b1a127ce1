//go:build ignore

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * divert: at the ports of an agent of boost, docs/protocol.md §9. What arrives for a socket of ours gets to it, a SYN in a
 * lane is held and told, and all else goes on untouched: a connection that is older than its lane, too.
 */
#include "../include/drop.h"
#include "abi.h"
#include "deliver.h"
#include "finish.h"
#include "maps.h"
#include "segment.h"

const struct held_syn *unused_held_syn __attribute__((unused));
const enum divert_reason *unused_reason __attribute__((unused));

/* quoted reads whose segment an ICMP error quotes: its ends, as who sent the segment sees them. */
static __always_inline int quoted(struct __sk_buff *skb, const struct segment *error, struct segment *s)
{
	__u8 type, ports[4];

	if (error->fragment || bpf_skb_load_bytes(skb, error->l4, &type, 1))
		return -1;
	__builtin_memset(s, 0, sizeof(*s));
	if (error->family == 4) {
		__u8 h[IP4_LEN];

		if ((type != 3 && type != 11 && type != 12) || bpf_skb_load_bytes(skb, error->l4 + 8, h, sizeof(h)))
			return -1;
		if (h[0] >> 4 != 4 || (h[0] & 15) < 5 || h[9] != PROTO_TCP || (h[6] << 8 | h[7]) & IP4_OFFSET)
			return -1;
		s->ends.local[10] = s->ends.local[11] = s->ends.remote[10] = s->ends.remote[11] = 0xff;
		network_ends(s, h + 12, h + 16, 12, 1);
		s->l4 = error->l4 + 8 + (h[0] & 15) * 4;
	} else {
		__u32 h[IP6_LEN / 4];
		const __u8 *b = (const void *)h;

		if (type < ICMP6_UNREACHABLE || type > ICMP6_PARAMETER || bpf_skb_load_bytes(skb, error->l4 + 8, h, sizeof(h)))
			return -1;
		if (b[0] >> 4 != 6 || b[6] != PROTO_TCP || mapped(b + 8) || mapped(b + 24))
			return -1;
		network_ends(s, h + 2, h + 6, 0, 1);
		s->l4 = error->l4 + 8 + IP6_LEN;
	}
	if (bpf_skb_load_bytes(skb, s->l4, ports, sizeof(ports)))
		return -1;
	__builtin_memcpy(s->ends.local_port, ports, 2);
	__builtin_memcpy(s->ends.remote_port, ports + 2, 2);
	return 0;
}

/* deliver_error: the kernel finds the socket by what the error quotes, once the packet is for this machine. */
static __always_inline int deliver_error(struct __sk_buff *skb, const struct segment *error, const struct divert_config *c)
{
	struct segment s;

	if (error->proto != (error->family == 4 ? PROTO_ICMP : PROTO_ICMPV6) || quoted(skb, error, &s))
		return TC_ACT_UNSPEC;
	if (!bpf_map_lookup_elem(&sessions, &s.ends))
		return TC_ACT_UNSPEC;
	skb->mark = c->mark;
	count(DIVERT_ERROR_DELIVERED);
	return TC_ACT_OK;
}

SEC("tc")
int divert(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct divert_config *c = bpf_map_lookup_elem(&config, &zero);
	struct segment s;

	if (!c || !c->mark)
		return TC_ACT_UNSPEC;
	if (parse(skb, &s, ARRIVING))
		return s.proto == PROTO_ICMP || s.proto == PROTO_ICMPV6 ? deliver_error(skb, &s, c) : TC_ACT_UNSPEC;
	if (skb->mark == c->mark)
		return come_back(skb, &s, c);
	struct session *own = s.fragment ? NULL : bpf_map_lookup_elem(&sessions, &s.ends);

	if (own) {
		int verdict = deliver(skb, &s, own, c);

		if (verdict != GO_ON)
			return verdict;
	}
	return is_first(&s) ? arriving_syn(skb, &s, c) : TC_ACT_UNSPEC;
}

/* reinject: at lo, where the agent sends what it has decided about. It goes back to the port where it came. */
SEC("tc")
int reinject(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct divert_config *c = bpf_map_lookup_elem(&config, &zero);
	struct segment s;

	if (!c || !c->mark || skb->mark != c->mark || parse(skb, &s, ARRIVING))
		return TC_ACT_UNSPEC;
	struct held *h = bpf_map_lookup_elem(&holds, &s.ends);

	if (!h) {
		count(DIVERT_NO_HOLD);
		return TC_ACT_UNSPEC;
	}
	return bpf_redirect(h->ifindex, BPF_F_INGRESS);
}

/* finish: at egress of each port. It works on when the agent is dead. */
SEC("tc")
int finish(struct __sk_buff *skb)
{
	struct segment s;

	if (parse(skb, &s, LEAVING) || s.fragment || !(s.flags & (TCP_FIN | TCP_SYN)))
		return TC_ACT_UNSPEC;
	struct session *own = bpf_map_lookup_elem(&sessions, &s.ends);

	if (!own)
		return TC_ACT_UNSPEC;
	if (s.flags & TCP_SYN)
		note(skb, &s, own);
	if (own->finished || !(s.flags & TCP_FIN))
		return TC_ACT_UNSPEC;
	if (become_reset(skb, &s))
		return drop(DIVERT_REWRITE);
	count(DIVERT_RESET);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
