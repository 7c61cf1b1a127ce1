/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* egress.h: what local sockets send. No service or identity address leaves as a source. */
#ifndef SCAFFOLD_HOST_EGRESS_H
#define SCAFFOLD_HOST_EGRESS_H

#include "ask.h"
#include "carried.h"
#include "cookie.h"
#include "death.h"
#include "fragment.h"
#include "icmp.h"
#include "ports.h"

#define DSCP bpf_htonl(0x0fc00000)

/*
 * clamp_mss keeps the MSS of a SYN or SYN-ACK within the uplink's MTU. A global function: the verifier goes through its
 * loop once, not on each way that leads to it.
 */
__noinline int clamp_mss(struct __sk_buff *skb, __u32 l4, __u32 mtu)
{
	__u16 limit = bpf_htons(mtu - IP6_LEN - 20);
	__u32 off = l4 + 20, end;
	__u8 words, option[2];
	__u16 mss;

	if (mtu < 1280 || bpf_skb_load_bytes(skb, l4 + 12, &words, 1))
		return 0;
	end = l4 + (words >> 4) * 4;
	for (int i = 0; i < 20 && off + 4 <= end; i++) {
		if (bpf_skb_load_bytes(skb, off, option, 2) || option[0] == 0)
			return 0;
		if (option[0] == 2)
			break;
		off += option[0] == 1 ? 1 : option[1];
	}
	if (off + 4 > end || bpf_skb_load_bytes(skb, off, option, 2) || option[0] != 2 ||
	    bpf_skb_load_bytes(skb, off + 2, &mss, 2) || bpf_ntohs(mss) <= bpf_ntohs(limit))
		return 0;
	if ((off - l4) & 1) /* straddles two words of the checksum */
		bpf_l4_csum_replace(skb, l4 + 16, __builtin_bswap16(mss), __builtin_bswap16(limit), 2);
	else
		bpf_l4_csum_replace(skb, l4 + 16, mss, limit, 2);
	return bpf_skb_store_bytes(skb, off + 2, &limit, 2, BPF_F_RECOMPUTE_CSUM);
}

/* leave writes the wire addresses; the socket's are gone afterwards. */
static __always_inline int leave(struct __sk_buff *skb, struct packet *p, __u32 slot, __u32 mtu,
				 const struct addr *src, const struct addr *dst, __u32 word)
{
	if (p->fragment == FIRST_FRAGMENT && remember_fragment(p, src, dst, word, slot))
		return drop(HOST_FRAGMENT);
	if (p->proto == PROTO_TCP && p->flags & TCP_SYN && mtu && clamp_mss(skb, p->l4, mtu))
		return drop(HOST_REWRITE);
	if (set_word(skb, l2_len, p, word) || rewrite(skb, l2_len, p, src, dst))
		return drop(HOST_REWRITE);
	return TC_ACT_UNSPEC;
}

/* word_of: an unresolved packet's flow label says who has returned it: nobody, when it leaves its host, but what the daemon asks again. */
static __always_inline __u32 word_of(struct __sk_buff *skb, __u32 word, int resolved, __u8 dscp)
{
	if (!resolved && sender_mark(skb) != MARK_LABELLED)
		word &= ~LABEL;
	if (dscp)
		word = (word & ~DSCP) | bpf_htonl((__u32)dscp << 20);
	return word;
}

static __always_inline void note_end(const struct packet *p, struct egress_flow *f)
{
	if (p->proto == PROTO_TCP && p->flags & (TCP_FIN | TCP_RST))
		f->end |= (p->flags & TCP_RST ? END_RST : 0) | (p->flags & TCP_FIN ? END_FIN_OUT : 0);
}

/*
 * sent_again: the label of a SYN that the kernel sends again, docs/protocol.md §3.1. Whoever was chosen may be cut off
 * while nobody is there to tell the routers: each other one goes to the next. Those between go as the first: a SYN may
 * just have been lost, and a switch asks its controller about what was returned twice. The largest count is named_host's.
 */
static __always_inline __u32 sent_again(struct __sk_buff *skb, const struct packet *p, struct egress_flow *f)
{
	__u8 times;

	if (f->state != STATE_CONNECTING || p->proto != PROTO_TCP || !is_syn(p) || sender_mark(skb) == MARK_LABELLED)
		return 0;
	times = ++f->datagrams;
	return times & 1 ? bpf_htonl(times / 2 + 1 < MAX_RETRY ? times / 2 + 1 : MAX_RETRY - 1) : 0;
}

/* speak sends a packet of a flow that has an entry. */
static __always_inline int speak(struct __sk_buff *skb, struct packet *p, struct egress_flow *f, __u64 locator,
				 __u32 mtu)
{
	struct addr src = { locator, *(__u64 *)f->socket }, dst = ADDR(f->peer);
	__u32 word = word_of(skb, p->word, !is_service(&dst), f->dscp);
	__u64 named = is_service(&dst) ? named_host(skb, p->word) : 0;

	if (named) {
		dst.hi = named;
		word |= p->word & LABEL;
	} else {
		word |= sent_again(skb, p, f);
	}
	f->seen = bpf_ktime_get_coarse_ns();
	note_end(p, f);
	return leave(skb, p, f->slot, mtu, &src, &dst, word);
}

/*
 * misrouted: the flow's uplink is another one than the routing table chose, or gone. Where it is gone the packet
 * leaves by the one at hand with the old locator, which is what the peer takes until it hears of the new one. Where
 * very many flows move the answers would be lost, and their room is needed: TCP is to think it sent, and to wait.
 */
static __noinline int misrouted(struct __sk_buff *skb, struct packet *p, const struct place *place, struct egress_flow *f)
{
	__u32 slot = f->slot, here = slot_out(skb, place);
	int verdict;

	if (slot >= MAX_SLOTS)
		return swallow(HOST_BLOCKED);
	if (place->slots[slot].ifindex)
		here = slot;
	else if (place->slots[slot].quiet && p->proto == PROTO_TCP && !(p->flags & TCP_RST)) /* said once */
		return swallow(HOST_QUIET);
	if (here >= MAX_SLOTS)
		return drop(HOST_NO_UPLINK);
	verdict = speak(skb, p, f, *(__u64 *)place->slots[slot].locator, place->slots[here].mtu);
	return verdict == TC_ACT_UNSPEC ? by_slot(skb, place, here) : verdict;
}

/* known sends a packet of a flow by its own uplink. */
static __always_inline int known(struct __sk_buff *skb, struct packet *p, const struct place *place,
				 struct egress_flow *f)
{
	__u32 slot = f->slot;

	if (slot >= MAX_SLOTS || place->slots[slot].ifindex != skb->ifindex)
		return misrouted(skb, p, place, f);
	return speak(skb, p, f, *(__u64 *)place->slots[slot].locator, place->slots[slot].mtu);
}

/* away sends what left by the slot. Only a guest's packet is not on that uplink yet. */
static __always_inline int away(struct __sk_buff *skb, int verdict, const struct slot *s)
{
	return verdict == TC_ACT_UNSPEC && guest_of(skb) ? depart(skb, s) : verdict;
}

/*
 * first sends the first packet of a new flow, which leaves by the uplink that the routing table chose.
 */
static __noinline int first(struct __sk_buff *skb, struct packet *p, const struct slot *s, struct flow_key *key,
			    struct birth *b)
{
	struct addr src = { *(__u64 *)s->locator };
	int verdict;

	b->locator = src.hi;
	if (b->keep && make(key, b))
		return drop(HOST_FULL);
	src.lo = b->socket;
	verdict = leave(skb, p, b->slot, s->mtu, &src, &b->peer, word_of(skb, p->word, !is_service(&b->peer), b->dscp));
	return away(skb, verdict, s);
}

/* stateless leaves as the instance itself: its suffix stands for it. */
static __noinline int stateless(struct __sk_buff *skb, struct packet *p, const struct slot *s)
{
	struct addr src = { *(__u64 *)s->locator, p->src.lo };
	int verdict;

	/* No copy of the destination: Linux 6.1 rounds each frame up, and 512 bytes have to do for all. */
	verdict = leave(skb, p, NO_SLOT, s->mtu, &src, &p->dst, word_of(skb, p->word, !is_service(&p->dst), 0));
	return away(skb, verdict, s);
}

/* dialled refuses, on this host, what a program sends to an address that it once saw as a peer. */
static __noinline int dialled(struct __sk_buff *skb, struct packet *p)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct addr from = p->dst;

	if (!is_syn(p))
		return drop(HOST_DIALLED_PEER);
	client_key(&key, p, guest_of(skb));
	if (!refuse(skb, l2_len, p, &from, 3, 0))
		hand_over(skb, &key, &p->seq, 0, EVENT_REFUSED << 8 | 3);
	return drop(HOST_DIALLED_PEER);
}

static __noinline int new_client(struct __sk_buff *skb, struct packet *p, const struct place *place,
				 struct flow_key *key)
{
	__u32 slot = slot_out(skb, place);
	struct birth b = { .peer = p->dst, .state = STATE_CONNECTING, .isn = p->seq, .lport = p->sport,
			   .role = ROLE_CLIENT, .slot = slot, .keep = 1 };

	if (slot >= MAX_SLOTS)
		return drop(HOST_NO_UPLINK);
	policy_of(&p->dst, &b);
	if (p->proto != PROTO_TCP)
		b.owner = bpf_get_socket_cookie(skb);
	else
		b.datagrams = 0; /* sent_again counts here */
	if (b.datagrams == DATAGRAMS_UNSET && p->proto == PROTO_UDP && is_service(&p->src))
		return stateless(skb, p, &place->slots[slot]);
	if (!has_room(key, ROLE_CLIENT))
		return drop(HOST_PEER_FULL);
	return first(skb, p, &place->slots[slot], key, &b);
}

/*
 * next_flow ends the flow of a socket that is gone, and finds the next one for its port: the socket had another one there,
 * perhaps, where it asked a port from which somebody else answered it.
 */
static __noinline struct egress_flow *next_flow(struct __sk_buff *skb, struct flow_key *key, struct egress_flow *f,
						__u16 asked)
{
	for (int i = 0; i < 2 && f && orphaned(skb, f); i++) {
		forget(key, f);
		PORT(key->rport) = key->proto == PROTO_UDP ? asked : 0;
		f = client_flow(key);
	}
	return f;
}

/* to_service: a client's packet. The key is zero. */
static __always_inline int to_service(struct __sk_buff *skb, struct packet *p, const struct place *place,
				      struct flow_key *key)
{
	struct egress_flow *f;

	if (p->proto != PROTO_TCP && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO))
		return drop(HOST_LEAK);
	client_key(key, p, guest_of(skb));
	f = client_flow(key);
	if (p->proto == PROTO_TCP) {
		if (f && is_syn(p) && *(__u32 *)f->isn != p->seq) {
			forget(key, f); /* the port has come back: another connection */
			f = 0;
		}
		if (!f && !is_syn(p))
			return drop(HOST_NO_FLOW_OUT);
	} else if (f && orphaned(skb, f)) {
		f = next_flow(skb, key, f, p->dport);
	}
	return f ? known(skb, p, place, f) : new_client(skb, p, place, key);
}

/*
 * another_port notes from which port a UDP server answers: the client may write to it. The last one stands in the flow's own
 * entries, those before it, of other transfers, in a map.
 */
static __noinline void another_port(const struct flow_key *key, struct egress_flow *f, __u16 port)
{
	__u64 id = *(__u64 *)f->newest;

	if (PORT(f->alt_port) != PORT(f->lport))
		note_port(key, f->birth, ROLE_SERVER, PORT(f->alt_port));
	PORT(f->alt_port) = port;
	for (int i = 0; i < MAX_ALIASES && id; i++) {
		struct ingress_flow *in = bpf_map_lookup_elem(&ingress_flows, &id);

		if (!in)
			in = bpf_map_lookup_elem(&ingress_half, &id);
		if (!in)
			return;
		PORT(in->alt_port) = port;
		id = *(__u64 *)in->older;
	}
}

/*
 * crowd_in gives a server's datagram flow its entry: in the table, or, where unknown senders have enough of that, in the LRU;
 * pings always there, and without any where that is crowded. Returns the reason if it gets none.
 */
static __noinline __u32 crowd_in(const struct flow_key *key, struct birth *b, __u32 guest)
{
	int echo = key->proto == PROTO_ICMPV6;

	if (echo && !guest)
		b->socket = echo_cookie(key);
	b->spare = echo || !has_room(key, ROLE_SERVER);
	if (!b->spare || spare_entry()) {
		b->keep = 1;
		return 0;
	}
	if (!b->socket)
		return HOST_PEER_FULL;
	count(HOST_ECHO);
	return 0;
}

static __noinline int new_server(struct __sk_buff *skb, struct packet *p, const struct place *place,
				 struct flow_key *key)
{
	__u32 slot = slot_out(skb, place);
	struct birth b = { .peer = p->dst, .state = STATE_BOUND, .isn = p->seq, .lport = p->sport,
			   .role = ROLE_SERVER, .slot = slot };

	if (slot >= MAX_SLOTS)
		return drop(HOST_NO_UPLINK);
	policy_of(&p->src, &b);
	if (p->proto == PROTO_TCP) {
		if (p->flags & TCP_RST)
			return stateless(skb, p, &place->slots[slot]); /* a connecting client is refused */
		if (!is_syn_ack(p))
			return drop(HOST_NO_FLOW_OUT);
		b.state = STATE_HALF_OPEN;
		if (!guest_of(skb))
			b.socket = cookie(p, key); /* which does not tell of which guest it is */
		b.keep = !b.socket;
	} else {
		__u32 reason = crowd_in(key, &b, guest_of(skb));

		if (reason)
			return drop(reason);
	}
	return first(skb, p, &place->slots[slot], key, &b);
}

/* from_service: a server's packet to the frozen address of its peer. The key is zero. */
static __always_inline int from_service(struct __sk_buff *skb, struct packet *p, const struct place *place,
					struct flow_key *key)
{
	struct egress_flow *f;
	__u32 slot;

	if (p->proto != PROTO_TCP && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO_REPLY))
		return drop(HOST_LEAK);
	server_key(key, p, guest_of(skb));
	f = bpf_map_lookup_elem(&egress_flows, key);
	if (!f)
		f = bpf_map_lookup_elem(&egress_half, key);
	if (f) {
		if (p->proto == PROTO_UDP && PORT(f->alt_port) != p->sport)
			another_port(key, f, p->sport);
		if (p->proto == PROTO_TCP && p->flags & (TCP_FIN | TCP_RST)) {
			int verdict = ending(skb, p, f);

			if (verdict != TC_ACT_UNSPEC)
				return verdict;
		}
		return known(skb, p, place, f);
	}
	if (is_peer(&p->dst) && is_syn(p))
		return dialled(skb, p);
	if (is_peer(&p->dst))
		return new_server(skb, p, place, key);
	if (p->proto != PROTO_UDP || !in_as(&p->dst) || p->dst.lo == HOST_LOW)
		return drop(HOST_LEAK);
	slot = slot_out(skb, place); /* a source that was left unset */
	return slot < MAX_SLOTS ? stateless(skb, p, &place->slots[slot]) : drop(HOST_NO_UPLINK);
}

/*
 * from_host: neither a service nor an identity as source. The host itself may speak to other hosts and send
 * messages; what has a live socketID for source was written by the program on another uplink (depart).
 */
static __noinline int from_host(struct __sk_buff *skb, struct packet *p)
{
	if (is_message(p))
		return message_out(skb, p);
	if (is_peer(&p->src) && live(p->src.lo))
		return TC_ACT_UNSPEC;
	if (is_service(&p->dst))
		return is_peer(&p->src) ? drop(HOST_LEAK) : TC_ACT_OK; /* OK: a client that chose its own source */
	if (p->proto == PROTO_TCP || is_echo(p, ICMP6_ECHO) || p->proto == PROTO_UDP)
		return dialled(skb, p);
	return TC_ACT_UNSPEC;
}

/* from_identity: a client's socket, and no service as destination. */
static __noinline int from_identity(struct __sk_buff *skb, struct packet *p)
{
	if (is_peer(&p->dst) && (p->proto == PROTO_TCP || is_echo(p, ICMP6_ECHO) || p->proto == PROTO_UDP))
		return dialled(skb, p);
	return drop(HOST_LEAK);
}

/*
 * carried: an agent of boost on this machine sends it for another host. The mark alone proves nothing: a container on a macvlan of
 * the uplink keeps it on its way here, and may set it (CAP_NET_RAW). So this namespace is to have a socket with these ends, which
 * takes the right to be transparent. A reset is let through without: the kernel sends one when it has closed the socket.
 */
static __noinline int carried(struct __sk_buff *skb, const struct packet *of)
{
	struct bpf_sock_tuple t = {};
	struct packet p = *of;
	struct bpf_sock *sk;
	int open;

	if (p.proto != PROTO_TCP || p.fragment != WHOLE || parse_ports(skb, l2_len, &p))
		return 0;
	if (p.flags & TCP_RST)
		return 1;
	__builtin_memcpy(t.ipv6.saddr, &p.dst, sizeof(t.ipv6.saddr));
	__builtin_memcpy(t.ipv6.daddr, &p.src, sizeof(t.ipv6.daddr));
	t.ipv6.sport = p.dport;
	t.ipv6.dport = p.sport;
	sk = bpf_skc_lookup_tcp(skb, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	open = sk->state != BPF_TCP_LISTEN; /* a wildcard fits every address */
	bpf_sk_release(sk);
	return open;
}

/* others: what only passes through this machine, also our own bounces and answers, or is sent for another host. */
static __always_inline int others(struct __sk_buff *skb, const struct packet *p)
{
	return skb->ingress_ifindex || (skb->mark == MARK_CARRIED && carried(skb, p));
}

/* passing: not ours to rewrite. */
static __always_inline int passing(struct __sk_buff *skb, const struct packet *p)
{
	return (!is_service(&p->dst) && !is_peer(&p->dst)) || others(skb, p);
}

/*
 * foreign: a local socket sends from a locator that others have. Any user may bind one, since programs may bind service
 * addresses, which no interface has either (ip_nonlocal_bind); and access lists go by locators.
 */
static __noinline int foreign(__u64 locator)
{
	struct place *place = whereabouts();

	if (!place || accepted(locator))
		return 0;
	for (__u32 i = 0; i < MAX_SLOTS; i++)
		if (*(__u64 *)place->slots[i].locator == locator)
			return 0;
	return 1;
}

static __always_inline int egress(struct __sk_buff *skb)
{
	struct flow_key key __attribute__((aligned(8))) = {};
	struct place *place;
	struct packet p;
	int ours, verdict;

	if (parse_network(skb, l2_len, &p))
		return TC_ACT_UNSPEC;
	ours = is_service(&p.src) || is_identity(&p.src);
	if (!ours && in_as(&p.src) && !others(skb, &p) && foreign(p.src.hi))
		return drop(HOST_FOREIGN);
	if (!ours && passing(skb, &p))
		return TC_ACT_UNSPEC;
	if (parse_ports(skb, l2_len, &p))
		return drop(HOST_MALFORMED);
	if (!ours) {
		verdict = from_host(skb, &p);
		if (verdict != TC_ACT_OK)
			return verdict;
	} else if (is_icmp_error(&p)) {
		return error_out(skb, &p);
	} else if (!is_service(&p.dst) && !is_service(&p.src)) {
		return from_identity(skb, &p);
	}
	place = whereabouts();
	if (!place)
		return drop(HOST_NO_UPLINK);
	if (p.fragment == LATER_FRAGMENT)
		return later_fragment(skb, &p, place);
	if (is_service(&p.dst))
		return to_service(skb, &p, place, &key);
	return from_service(skb, &p, place, &key);
}

#endif
