/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* answer.h: packets that the edge sends back by itself. */
#ifndef SCAFFOLD_HOST_ANSWER_H
#define SCAFFOLD_HOST_ANSWER_H

#include "mark.h"
#include "meter.h"
#include "refuse.h"

/* send_back puts the finished answer on the link on which the question came. */
static __always_inline int send_back(struct __sk_buff *skb, __u32 reason)
{
	if (swap_macs(skb, l2_len))
		return drop(HOST_REWRITE);
	count(reason);
	return bpf_redirect(skb->ifindex, 0);
}

/* bounce returns a first packet to the service prefix: another instance may have what this host has not. */
static __noinline int bounce(struct __sk_buff *skb, struct packet *p, __u64 service_upper)
{
	struct addr src = p->src, to = { service_upper, p->dst.lo };
	__u8 hops = p->hop_limit - 1;

	if (p->hop_limit <= 1)
		return drop(HOST_HOP_LIMIT);
	if (set_word(skb, l2_len, p, with_refusal(p->word, p->dst.hi, retry_of(p) + 1)) || rewrite(skb, l2_len, p, &src, &to) ||
	    bpf_skb_store_bytes(skb, l2_len + 7, &hops, 1, BPF_F_RECOMPUTE_CSUM))
		return drop(HOST_REWRITE);
	return send_back(skb, HOST_BOUNCED);
}

#define LATER bpf_htonl(1) /* in a refusal: ask again, events.go. The first byte is RFC 4884's, and zero */

/* turn_away answers with a refusal, docs/protocol.md §3.5. */
static __noinline int turn_away(struct __sk_buff *skb, struct packet *p, __u8 code, __u32 reason)
{
	struct addr self = { p->dst.hi, HOST_LOW };

	if (refuse(skb, l2_len, p, &self, code, reason == HOST_LATER ? LATER : 0))
		return drop(HOST_REWRITE);
	count(reason);
	return bpf_redirect(skb->ifindex, 0);
}

/* refuse_port says that no instance has such a port. */
static __always_inline int refuse_port(struct __sk_buff *skb, struct packet *p)
{
	return turn_away(skb, p, 4, HOST_REFUSED);
}

struct reset_head {
	__u32 word;
	__u16 len;
	__u8  next, hops;
	struct addr src, dst;
	__u16 sport, dport;
	__u32 seq, ack;
	__u16 flags, window;
	__u16 sum, urgent;
	__u32 end; /* keeps the size a multiple of eight; not sent */
};

/*
 * reset answers a TCP packet with RST. The checksum starts from nothing and grows by two differences, so that
 * it is right for complete checksums and for the halves of CHECKSUM_PARTIAL alike: in one's complement
 * 0xffff and 0 are the same.
 */
static __noinline int reset(struct __sk_buff *skb, struct packet *p, __u32 reason)
{
	struct reset_head h = {
		.word = bpf_htonl(0x60000000), .len = bpf_htons(20), .next = PROTO_TCP, .hops = 64,
		.src = p->dst, .dst = p->src, .sport = p->dport, .dport = p->sport,
	};
	__u32 pseudo, data = 0;

	if (p->proto != PROTO_TCP || p->fragment != WHOLE || p->flags & TCP_RST || p->l4 != l2_len + IP6_LEN)
		return drop(reason);
	if (p->flags & TCP_ACK) {
		h.seq = p->ack;
		h.flags = bpf_htons(5 << 12 | TCP_RST);
	} else {
		h.ack = bpf_htonl(bpf_ntohl(p->seq) + 1);
		h.flags = bpf_htons(5 << 12 | TCP_RST | TCP_ACK);
	}
	pseudo = fold(pseudo_sum(&h.src, &h.dst, 20, PROTO_TCP));
	data = bpf_csum_diff(0, 0, (__be32 *)&h.sport, 20, 0);
	h.sum = 0xffff;
	if (bpf_skb_change_tail(skb, l2_len + 60, 0) || bpf_skb_store_bytes(skb, l2_len, &h, 60, 0) ||
	    bpf_l4_csum_replace(skb, l2_len + 56, 0, pseudo, BPF_F_PSEUDO_HDR) ||
	    bpf_l4_csum_replace(skb, l2_len + 56, 0, data, 0))
		return drop(HOST_REWRITE);
	count(HOST_RESET);
	return send_back(skb, reason);
}

#define PROBE 3
#define PROBE_ACK 4

/* The swaps of a PROBE's answer leave its checksum alone; only the type counts. */
static __always_inline int answer_probe(struct __sk_buff *skb, struct packet *p)
{
	struct addr back[2] = { p->dst, p->src };
	__u16 ports[2] = { p->dport, p->sport };
	__u8 hops = 64, type = PROBE_ACK;

	if (bpf_l4_csum_replace(skb, p->l4 + 6, bpf_htons(1 << 8 | PROBE), bpf_htons(1 << 8 | PROBE_ACK),
				2 | BPF_F_MARK_MANGLED_0) ||
	    bpf_skb_store_bytes(skb, p->l4 + 9, &type, 1, BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, p->l4, ports, sizeof(ports), BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, l2_len + 8, back, sizeof(back), BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, l2_len + 7, &hops, 1, BPF_F_RECOMPUTE_CSUM))
		return drop(HOST_REWRITE);
	return send_back(skb, HOST_PROBED);
}

/* message takes what came for the message port of this host, docs/protocol.md §4. */
static __noinline int message(struct __sk_buff *skb, struct packet *p)
{
	__u64 id = is_socket(&p->dst) ? p->dst.lo : 0;
	__u8 head[2];

	if (bpf_skb_load_bytes(skb, p->l4 + 8, head, sizeof(head)))
		return drop(HOST_MALFORMED);
	if (hand_over(skb, 0, 0, id, EVENT_MESSAGE << 8))
		return TC_ACT_SHOT; /* counted as HOST_DAEMON_AWAY */
	return drop(HOST_MESSAGE);
}

/*
 * asked takes what came for the host itself: PROBEs, which need no daemon, and answers to those that it sent, which are
 * known by their nonce. Were others let in, a flood could hide the true ones, and who does not answer is given up.
 */
static __noinline int asked(struct __sk_buff *skb, struct packet *p)
{
	struct addr nobody = {};
	__u8 head[16] __attribute__((aligned(8)));

	if (bpf_skb_load_bytes(skb, p->l4 + 8, head, 2))
		return drop(HOST_MALFORMED);
	if (head[0] == 1 && head[1] == PROBE)
		return answer_probe(skb, p);
	if (head[0] != 1 || head[1] != PROBE_ACK || bpf_skb_load_bytes(skb, p->l4 + 8, head, sizeof(head)) ||
	    !marked(*(__u64 *)(head + 8), &nobody, MARK_NONCE))
		return drop(HOST_UNASKED);
	return spend(&p->src, BUDGET_ASKED, ASKED_RATE, RING_MESSAGES) ? TC_ACT_SHOT : message(skb, p);
}

/* strange takes a message for a socketID that no flow has: one that this host offered is confirmed, §6.5. */
static __noinline int strange(struct __sk_buff *skb, struct packet *p)
{
	int refused;

	if (marked(p->dst.lo, &p->src, MARK_OFFER))
		refused = spend(&p->src, BUDGET_ASKED, ASKED_RATE, RING_MESSAGES);
	else
		refused = spend(&p->src, BUDGET_UNSOLICITED, UNSOLICITED_RATE, RING_UNSOLICITED);
	return refused ? TC_ACT_SHOT : message(skb, p);
}

#define RETIRED_NS 60000000000ULL /* longer than any redirect keeps a packet on its way */
#define STRAY_NS 2000000000ULL    /* in which a peer that was told can do better than to be reset */

/*
 * stray answers a packet of a flow that is not here. The daemon tells the sender's (FAIL), which then finds out
 * and fails over. If that does not help, or the daemon does not read, an RST ends the connection.
 */
static __noinline int stray(struct __sk_buff *skb, struct packet *p)
{
	__u64 id = p->dst.lo, now = bpf_ktime_get_coarse_ns(), *since = bpf_map_lookup_elem(&strays, &id);

	if (since && now - *since > STRAY_NS)
		return reset(skb, p, HOST_NO_FLOW_IN);
	if (!since)
		bpf_map_update_elem(&strays, &id, &now, BPF_ANY);
	if (spend(&p->src, BUDGET_STRAYS, UNSOLICITED_RATE, RING_UNSOLICITED) || hand_over(skb, 0, 0, id, EVENT_STRAY << 8))
		return reset(skb, p, HOST_NO_FLOW_IN);
	return drop(HOST_STRAY);
}

/*
 * unknown takes what came for a socketID that no flow has. One that a flow gave up lately gets no answer: late
 * packets of the peer come to it, and an RST from there could still be taken for the flow's own.
 */
static __noinline int unknown(struct __sk_buff *skb, struct packet *p)
{
	__u64 id = p->dst.lo, *when;

	if (p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT))
		return strange(skb, p);
	when = bpf_map_lookup_elem(&former_ids, &id);
	if (when && bpf_ktime_get_coarse_ns() - *when < RETIRED_NS)
		return drop(HOST_RETIRED);
	/* A SYN-ACK to an attempt that was given up leaves a half-open connection behind: that must end. */
	if (is_icmp_error(p) || is_syn_ack(p) || p->flags & TCP_RST || p->fragment == LATER_FRAGMENT)
		return reset(skb, p, HOST_NO_FLOW_IN);
	return stray(skb, p);
}

#endif
