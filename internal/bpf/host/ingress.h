/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ingress.h: what arrives for one of this host's locators. */
#ifndef SCAFFOLD_HOST_INGRESS_H
#define SCAFFOLD_HOST_INGRESS_H

#include "death.h"
#include "icmp.h"

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
	       admitted(ADDR(f->key.local).lo, p->proto, p->dport);
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
	if (out->retried)
		become(out, STATE_CONNECTING, STATE_LOST);
	return out->retried;
}

/* refused_by: an RST to a SYN is a refusal like code 4, and is held like one. */
static __noinline int refused_by(struct __sk_buff *skb, struct packet *p, struct ingress_flow *f)
{
	struct addr remote = ADDR(f->key.remote), local = ADDR(f->key.local);
	__u64 id = p->dst.lo;

	if (p->src.lo != remote.lo || !in_as(&p->src))
		return drop(HOST_BAD_SOURCE);
	if (rewrite(skb, l2_len, p, &remote, &local))
		return drop(HOST_REWRITE);
	return hold(skb, f, id, 4);
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
		return unknown(skb, p);
	if (is_icmp_error(p))
		return error_in(skb, p, f);
	if (p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT))
		return message(skb, p);
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
	if (p->proto == PROTO_TCP && p->flags & (TCP_FIN | TCP_RST))
		ended(&f->key, *(__u64 *)f->birth,
		      (p->flags & TCP_RST ? END_RST : 0) | (p->flags & TCP_FIN ? END_FIN_IN : 0));

	struct addr src = ADDR(f->key.remote), dst = ADDR(f->key.local);

	if (f->state == STATE_HALF_OPEN && !(p->flags & (TCP_SYN | TCP_RST)))
		spoken(&f->key, *(__u64 *)f->birth);
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

/* may_enter: only what is registered here gets in; a wildcard listener answers to no name. */
static __always_inline int may_enter(const struct packet *p, const struct service *s)
{
	if (p->fragment == LATER_FRAGMENT || is_echo(p, ICMP6_ECHO))
		return s->live != 0;
	return admitted(p->dst.lo, p->proto, p->dport);
}

/*
 * owner is the guest that a first packet is for: of several, also the host itself, any that serves the triple. Where
 * a repeated one meets another guest than the first did, the client takes one of the two answers, as it does where
 * two hosts answer. Packets without ports and all fragments go by the service alone.
 */
static __noinline __u32 owner(const struct packet *p)
{
	struct owner_key k __attribute__((aligned(8))) = { .nth = OWNERS };
	__u32 *n, *guest;

	__builtin_memcpy(k.suffix, &p->dst.lo, sizeof(k.suffix));
	if (p->fragment == WHOLE && p->proto != PROTO_ICMPV6) {
		PORT(k.port) = p->dport;
		k.proto = p->proto;
	}
	n = bpf_map_lookup_elem(&owners, &k);
	if (!n || !*n)
		return 0;
	k.nth = (__u32)((p->src.hi ^ p->src.lo) * 0x9e3779b97f4a7c15ULL >> 32) % *n;
	guest = bpf_map_lookup_elem(&owners, &k);
	return guest ? *guest : 0;
}

/* welcome: whoever asks may connect to the service, docs/protocol.md §5.7. */
static __noinline int welcome(const struct packet *p)
{
	struct guard_key key = { .bits = 128 };

	__builtin_memcpy(key.suffix, &p->dst.lo, sizeof(key.suffix));
	__builtin_memcpy(key.locator, &p->src.hi, sizeof(key.locator));
	return bpf_map_lookup_elem(&guards, &key) != 0;
}

/*
 * summoned: an unresolved RSYN asks whether this host goes on with a flow. Only the daemon knows. Anybody can send
 * them, so half of the ring is not for them: a flood must not cost the messages of flows that are there.
 */
static __noinline int summoned(struct __sk_buff *skb, struct packet *p)
{
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > RING_LIMIT / 2)
		return drop(HOST_METERED);
	return spend(METER_UNRESOLVED, UNRESOLVED_RATE) ? TC_ACT_SHOT : message(skb, p);
}

/* to_service_here: the low half is a suffix, the packet is a flow's first. */
static __always_inline int to_service_here(struct __sk_buff *skb, struct packet *p)
{
	struct service *s = bpf_map_lookup_elem(&services, &p->dst.lo);
	struct addr src = p->src, dst = { 0, p->dst.lo };

	if (!is_syn(p) && p->proto != PROTO_UDP && !is_echo(p, ICMP6_ECHO) && p->fragment != LATER_FRAGMENT)
		return drop(HOST_NOT_ADMITTED);
	if (!is_peer(&src) && (p->proto != PROTO_UDP || restore_source(&src)))
		return drop(HOST_BAD_SOURCE);
	/* Where all retries led here, to a service that is here no more, the client hears that from the daemon. */
	if (s && (s->live || retry_of(p) >= 3) && p->proto == PROTO_UDP && p->dport == bpf_htons(MESSAGE_PORT))
		return summoned(skb, p);
	if (s && s->guarded && !welcome(p)) {
		if (p->fragment == LATER_FRAGMENT)
			return drop(HOST_FORBIDDEN);
		return turn_away(skb, p, 1, HOST_FORBIDDEN);
	}
	if (!s || !may_enter(p, s)) {
		if (p->fragment == LATER_FRAGMENT)
			return drop(HOST_NOT_ADMITTED);
		if (s && retry_of(p) < 3)
			return bounce(skb, p, *(__u64 *)s->upper);
		return refuse_port(skb, p);
	}
	dst.hi = *(__u64 *)s->upper;
	return arrive(skb, p, &src, &dst, owner(p));
}

/* to_host: the host's own address. Only the message port is ours. */
static __always_inline int to_host(struct __sk_buff *skb, struct packet *p)
{
	if (p->proto != PROTO_UDP || parse_udp(skb, p) || p->dport != bpf_htons(MESSAGE_PORT))
		return TC_ACT_UNSPEC;
	return message(skb, p);
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
