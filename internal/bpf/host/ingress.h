/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ingress.h: what arrives for one of this host's locators. */
#ifndef SCAFFOLD_HOST_INGRESS_H
#define SCAFFOLD_HOST_INGRESS_H

#include "ask.h"
#include "death.h"
#include "icmp.h"
#include "ports.h"

/* arrive writes the addresses that the socket knows. */
static __always_inline int arrive(struct __sk_buff *skb, struct packet *p, const struct addr *src,
				  const struct addr *dst, __u32 guest)
{
	return rewrite(skb, l2_len, p, src, dst) ? drop(HOST_REWRITE) : deliver(guest);
}

/* ports_fit: who knows a socketID may use its flow, not every port of the host. */
static __always_inline int ports_fit(const struct packet *p, const struct ingress_flow *f)
{
	if (p->fragment == LATER_FRAGMENT)
		return 1;
	if (p->proto == PROTO_TCP)
		return p->dport == PORT(f->key.lport) && p->sport == PORT(f->key.rport);
	if (f->role == ROLE_CLIENT)
		return p->dport == PORT(f->key.lport) && (p->proto == PROTO_UDP || p->type == ICMP6_ECHO_REPLY);
	if (p->sport != PORT(f->key.rport))
		return 0;
	if (p->proto == PROTO_ICMPV6)
		return p->type == ICMP6_ECHO;
	return p->dport == PORT(f->lport) || p->dport == PORT(f->alt_port) ||
	       admitted(ADDR(f->key.local).lo, p->proto, p->dport) || answers_from(f, p->dport);
}

/*
 * bind_to makes the sender the peer, on one CPU only. The flow has one state for all its attempts, so that one
 * answer counts. Returns whether Steer began the attempt.
 */
static __noinline int bind_to(struct ingress_flow *f, __u64 id, const struct addr *peer)
{
	struct egress_flow *out = bpf_map_lookup_elem(&egress_flows, &f->key);
	struct place *place = whereabouts();
	__u32 slot = f->slot;

	if (!out || *(__u64 *)out->birth != *(__u64 *)f->birth ||
	    __sync_val_compare_and_swap(&out->state, STATE_CONNECTING, STATE_BINDING) != STATE_CONNECTING)
		return 0;
	ADDR(f->peer) = *peer;
	ADDR(out->peer) = *peer;
	*(__u64 *)out->socket = id;
	if (out->retried && slot < MAX_SLOTS && place) {
		out->slot = slot;
		ADDR(out->stable) = (struct addr){ *(__u64 *)place->slots[slot].locator, id };
	}
	f->state = STATE_BOUND;
	out->state = STATE_BOUND;
	remember_peer(&f->key, peer->hi);
	if (out->retried)
		become(out, STATE_CONNECTING, STATE_LOST);
	return out->retried;
}

/* refused_by: an RST to a SYN is a refusal like code 4, and is held like one. */
static __noinline int refused_by(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct addr remote = ADDR(f->key.remote), local = ADDR(f->key.local);
	__u64 id = p->dst.lo;
	__u32 host = bpf_be64_to_cpu(p->src.hi) & 0xffff;

	if (p->src.lo != remote.lo || !in_as(&p->src))
		return drop(HOST_BAD_SOURCE);
	if (rewrite(skb, l2_len, p, &remote, &local))
		return drop(HOST_REWRITE);
	return hold(skb, f, id, 4, host);
}

/* answered: an answer to a connecting flow. 0: deliver; else drop for that reason. */
static __always_inline int answered(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	__u64 id = p->dst.lo;

	if (p->proto == PROTO_TCP &&
	    (!is_syn_ack(p) || bpf_ntohl(p->ack) != bpf_ntohl(*(__u32 *)f->isn) + 1))
		return HOST_CONNECTING;
	if (!is_peer(&p->src))
		return HOST_BAD_SOURCE;
	if (f->datagrams == DATAGRAMS_UNBOUND && p->proto == PROTO_UDP)
		return 0;
	if (p->fragment == LATER_FRAGMENT)
		return HOST_CONNECTING;
	if (bind_to(f, id, &p->src))
		hand_over(skb, &f->key, (const __u32 *)f->isn, id, EVENT_ANSWERED << 8);
	return same(&ADDR(f->peer), &p->src) ? 0 : HOST_SECOND_ANSWER;
}

static __always_inline int second_answer(struct __sk_buff *skb, struct packet *p)
{
	if (is_syn_ack(p))
		return reset(skb, p, HOST_SECOND_ANSWER);
	return drop(HOST_BAD_SOURCE);
}

#define DELIVER TC_ACT_OK /* no verdict of ours otherwise */

/* unusual: the sender is not the one peer of a bound socketID. */
static __noinline int unusual(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct addr peer = ADDR(f->peer);
	int reason;

	if (f->state == STATE_BLOCKED)
		return drop(HOST_BLOCKED);
	if (f->state == STATE_CONNECTING) {
		if (p->proto == PROTO_TCP && p->flags & TCP_RST)
			return refused_by(skb, p, f);
		reason = answered(skb, p, f);
		if (!reason)
			return DELIVER;
		return reason == HOST_SECOND_ANSWER ? second_answer(skb, p) : drop(reason);
	}
	/* Accepted before the peer's address is known. */
	if (f->state != STATE_LOST && !peer.hi && !peer.lo && is_peer(&p->src))
		return DELIVER;
	return second_answer(skb, p);
}

/* on_access_list: whoever asks may connect to the service, docs/protocol.md §5.7. */
static __noinline int on_access_list(__u64 suffix, __u64 locator)
{
	struct access_key key = { .bits = 128 };

	__builtin_memcpy(key.suffix, &suffix, sizeof(key.suffix));
	__builtin_memcpy(key.locator, &locator, sizeof(key.locator));
	return bpf_map_lookup_elem(&guards, &key) != 0;
}

/* without_entry: pings need none. */
static __noinline int without_entry(struct __sk_buff *skb, struct packet *p)
{
	struct addr *to = is_echo(p, ICMP6_ECHO) ? pinged(p) : 0;
	struct addr src = p->src, dst;
	struct service *s;

	if (!to)
		return unknown(skb, p);
	dst = *to;
	s = bpf_map_lookup_elem(&services, &dst.lo);
	if (!s || !s->live || *(__u64 *)s->upper != dst.hi || (s->restricted && !on_access_list(dst.lo, src.hi)))
		return unknown(skb, p);
	return arrive(skb, p, &src, &dst, 0);
}

/* concerning takes a message to a flow: who sends it has seen its packets, or is its peer. */
static __noinline int concerning(struct __sk_buff *skb, struct packet *p)
{
	return spend(&p->src, BUDGET_FLOWS, FLOWS_RATE, RING_MESSAGES) ? TC_ACT_SHOT : message(skb, p);
}

/* speaks says whether the packet is one of the flow's peer that tells its port. */
static __always_inline int speaks(const struct packet *p, const struct ingress_flow *f)
{
	return p->fragment != LATER_FRAGMENT && f->state == STATE_BOUND && same(&ADDR(f->peer), &p->src);
}

/* to_flow: the low half is a socketID. */
static __always_inline int to_flow(struct __sk_buff *skb, struct packet *p)
{
	__u64 id = p->dst.lo;
	struct ingress_flow *f = bpf_map_lookup_elem(&ingress_flows, &id);

	if (!f)
		f = bpf_map_lookup_elem(&ingress_half, &id);
	if (!f && p->proto == PROTO_TCP && (p->flags & (TCP_SYN | TCP_RST | TCP_ACK)) == TCP_ACK && !recall(p))
		f = bpf_map_lookup_elem(&ingress_flows, &id);
	if (!f)
		return without_entry(skb, p);
	if (is_icmp_error(p))
		return error_in(skb, p, f);
	if (p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT))
		return concerning(skb, p);
	if (p->proto != f->key.proto || !ports_fit(p, f))
		return drop(HOST_BAD_PORT);
	if (!same(&ADDR(f->peer), &p->src)) {
		int verdict = unusual(skb, p, f);

		if (verdict != DELIVER)
			return verdict;
	}
	if (f->watch) {
		int verdict = watched(skb, p, f);

		if (verdict != TC_ACT_UNSPEC)
			return verdict;
	}
	f->seen = bpf_ktime_get_coarse_ns();
	if (p->proto == PROTO_UDP && p->sport != PORT(f->key.rport) && f->role == ROLE_CLIENT && speaks(p, f))
		note_port(&f->key, f->birth, ROLE_CLIENT, p->sport);
	if (p->proto == PROTO_TCP && p->flags & (TCP_FIN | TCP_RST))
		ended(&f->key, *(__u64 *)f->birth,
		      (p->flags & TCP_RST ? END_RST : 0) | (p->flags & TCP_FIN ? END_FIN_IN : 0));

	struct addr src = ADDR(f->key.remote), dst = ADDR(f->key.local);

	if (f->state == STATE_HALF_OPEN && !(p->flags & (TCP_SYN | TCP_RST)) && spoken(&f->key, *(__u64 *)f->birth))
		return TC_ACT_SHOT; /* counted; TCP comes again */
	return arrive(skb, p, &src, &dst, f->key.guest);
}

/* restore_source: a source left unset goes by its service's name where that is known. */
static __always_inline int restore_source(struct addr *src)
{
	struct service *s = bpf_map_lookup_elem(&services, &src->lo);

	if (!s || !in_as(src))
		return -1;
	src->hi = *(__u64 *)s->upper;
	return 0;
}

#define NOBODY 0xffffffff /* no guest's number */

/* owners_of makes the key of those that a first packet may be for, and returns how many there are: 0: the host alone. */
static __always_inline __u32 owners_of(const struct packet *p, struct owner_key *k)
{
	__u32 *n;

	__builtin_memset(k, 0, sizeof(*k));
	__builtin_memcpy(k->suffix, &p->dst.lo, sizeof(k->suffix));
	if (p->fragment == WHOLE && p->proto != PROTO_ICMPV6) {
		PORT(k->port) = p->dport;
		k->proto = p->proto;
	}
	k->nth = OWNERS;
	n = bpf_map_lookup_elem(&owners, k);
	return n ? *n : 0;
}

static __always_inline __u32 owner_at(struct owner_key *k, __u32 nth)
{
	__u32 *guest;

	k->nth = nth;
	guest = bpf_map_lookup_elem(&owners, k);
	return guest ? *guest : 0;
}

/* turn_of is where among the owners a client begins. */
static __always_inline __u32 turn_of(const struct packet *p)
{
	return (p->src.hi ^ p->src.lo) * 0x9e3779b97f4a7c15ULL >> 32;
}

/*
 * owner is the guest that a first packet is for: of several, also the host itself, any that serves the triple. Where
 * a repeated one meets another guest than the first did, the client takes one of the two answers, as it does where
 * two hosts answer. Packets without ports and all fragments go by the service alone.
 */
static __noinline __u32 owner(const struct packet *p)
{
	struct owner_key k __attribute__((aligned(8)));
	__u32 n = owners_of(p, &k);

	return n ? owner_at(&k, turn_of(p) % n) : 0;
}

/*
 * listener is the owner that takes the packet while sockets say who serves, or NOBODY. The daemon takes a port out of the
 * map when its program ends, but it may be away, or die with the program where memory runs out; the kernel would then reset
 * connections that others would take. Of several owners the next one has what the first does not listen for; those behind
 * it are asked up to ASKED_GUESTS. A first fragment goes where the later ones do, which name no port.
 */
static __noinline __u32 listener(struct __sk_buff *skb, const struct packet *p, __u64 upper)
{
	struct owner_key k __attribute__((aligned(8)));
	__u32 n = owners_of(p, &k), first, guest;

	if (!n)
		return opened_by(skb, p, upper, 0, 0) ? 0 : NOBODY;
	first = turn_of(p) % n;
	if (p->fragment != WHOLE) {
		guest = owner_at(&k, first);
		return guest || opened_by(skb, p, upper, 0, 0) ? guest : NOBODY;
	}
#pragma unroll /* the verifier does not follow a counter in memory */
	for (__u32 i = 0; i < ASKED_GUESTS; i++) {
		if (i == n)
			break;
		guest = owner_at(&k, (first + i) % n);
		if (opened_by(skb, p, upper, guest, 1))
			return guest;
	}
	return NOBODY;
}

/* taker is the guest, 0: the host, that a first packet goes to, or NOBODY: only what is registered here gets in. */
static __always_inline __u32 taker(struct __sk_buff *skb, const struct packet *p, const struct service *s)
{
	__u32 how;

	if (p->fragment == LATER_FRAGMENT || is_echo(p, ICMP6_ECHO))
		return s->live ? owner(p) : NOBODY;
	how = admitted(p->dst.lo, p->proto, p->dport);
	if (how == ADMITTED_LISTENING)
		return listener(skb, p, *(__u64 *)s->upper);
	return how ? owner(p) : NOBODY;
}

/* summoned: an unresolved RSYN asks whether this host goes on with a flow. Only the daemon knows. Anybody can send them. */
static __noinline int summoned(struct __sk_buff *skb, struct packet *p)
{
	return spend(&p->src, BUDGET_UNRESOLVED, UNRESOLVED_RATE, RING_UNSOLICITED) ? TC_ACT_SHOT : message(skb, p);
}

/* to_service_here: the low half is a suffix, the packet is a flow's first. */
static __always_inline int to_service_here(struct __sk_buff *skb, struct packet *p)
{
	struct service *s = bpf_map_lookup_elem(&services, &p->dst.lo);
	struct addr src = p->src, dst = { 0, p->dst.lo };
	__u32 guest;

	if (!is_syn(p) && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO) && p->fragment != LATER_FRAGMENT)
		return drop(HOST_NOT_ADMITTED);
	if (!is_peer(&src) && (p->proto != PROTO_UDP || restore_source(&src)))
		return drop(HOST_BAD_SOURCE);
	/*
	 * Where all four that a client sends (§6.5) led here, to a service that is here no more, it hears that from the
	 * daemon.
	 */
	if (s && (s->live || retry_of(p) >= 3) && p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT))
		return summoned(skb, p);
	if (s && s->restricted && !on_access_list(p->dst.lo, p->src.hi)) {
		if (p->fragment == LATER_FRAGMENT)
			return drop(HOST_FORBIDDEN);
		return turn_away(skb, p, 1, HOST_FORBIDDEN);
	}
	guest = s ? taker(skb, p, s) : NOBODY;
	if (guest == NOBODY) {
		if (p->fragment == LATER_FRAGMENT)
			return drop(HOST_NOT_ADMITTED);
		if (s && retry_of(p) < MAX_RETRY)
			return bounce(skb, p, *(__u64 *)s->upper);
		return s && put_off(skb, p, *(__u64 *)s->upper) ? turn_away(skb, p, 4, HOST_LATER) : refuse_port(skb, p);
	}
	if (retry_of(p) == MAX_RETRY && p->fragment == WHOLE) {
		__u32 judgement = judged_as(p);

		if (judgement)
			return judgement == JUDGED_LATER ? turn_away(skb, p, 4, HOST_LATER) : refuse_port(skb, p);
	}
	dst.hi = *(__u64 *)s->upper;
	return arrive(skb, p, &src, &dst, guest);
}

/* to_host: the host's own address. Only the message port is ours. */
static __always_inline int to_host(struct __sk_buff *skb, struct packet *p)
{
	if (p->proto != PROTO_UDP || parse_udp(skb, p) || p->dport != bpf_htons(MESSAGE_PORT))
		return TC_ACT_UNSPEC;
	return asked(skb, p);
}

static __always_inline int ingress(struct __sk_buff *skb)
{
	struct packet p;

	if (parse_network(skb, l2_len, &p))
		return TC_ACT_UNSPEC;
	if (!in_as(&p.dst)) {
		/* Service addresses are local to what arrives here: only the edge may write one. */
		if (is_service(&p.dst) || is_identity(&p.dst))
			return drop(HOST_NOT_RESOLVED);
		return TC_ACT_UNSPEC;
	}
	if (!accepted(p.dst.hi))
		return TC_ACT_UNSPEC;
	if (p.dst.lo == HOST_LOW)
		return to_host(skb, &p);
	if (parse_ports(skb, l2_len, &p))
		return drop(HOST_MALFORMED);
	return is_socket(&p.dst) ? to_flow(skb, &p) : to_service_here(skb, &p);
}

#endif
