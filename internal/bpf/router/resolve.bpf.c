//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * resolve: tc ingress of each port of a router. Packets to a host that has moved follow it, senders to one that
 * is gone are told so; at a service router a first packet's destination is refined to an instance, or the packet
 * is refused; docs/protocol.md §3.
 * It keeps nothing per flow, and leaves the forwarding to the kernel.
 */
#include "../include/parse.h"
#include "../include/csum.h"
#include "../include/drop.h"
#include "../include/refuse.h"
#include "abi.h"
#include "maps.h"
#include "choice.h"
#include "fail.h"

#define TOKENS 20000 /* answers of a kind a second and CPU, and as many at once */
#define TOKEN_NS (1000000000ULL / TOKENS)

#define ICMP6_EXCEEDED 3
#define UNREACHABLE_UNKNOWN 0
#define UNREACHABLE_FORBIDDEN 1
#define UNREACHABLE_NO_INSTANCE 3
#define UNREACHABLE_NO_PORT 4

/* take_token says whether this CPU may send another answer of the kind. */
static __always_inline int take_token(__u32 kind)
{
	struct bucket *b = bpf_map_lookup_elem(&buckets, &kind);

	if (!b)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u64 fresh = (now - b->filled) / TOKEN_NS;

	if (fresh) {
		b->tokens = b->tokens + fresh > TOKENS ? TOKENS : b->tokens + fresh;
		b->filled = now;
	}
	if (!b->tokens)
		return 0;
	b->tokens--;
	return 1;
}

/* answerable: RFC 4443 §2.4 (e) forbids errors to multicast and unspecified sources. */
static __always_inline int answerable(const struct packet *p)
{
	return (p->src.hi || p->src.lo) && *(__u8 *)&p->src.hi != 0xff;
}

static __always_inline int answer(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u8 code,
				  __u32 reason)
{
	struct addr from = { bpf_cpu_to_be64(c->locator), HOST_LOW };

	if (!answerable(p))
		return drop(ROUTER_MALFORMED);
	if (!take_token(BUCKET_REFUSALS))
		return drop(ROUTER_LIMITED);
	if (refuse(skb, ETH_HLEN, p, &from, code))
		return drop(ROUTER_REWRITE);
	count(reason);
	return bpf_redirect(skb->ifindex, 0);
}

/* become_exceeded makes a time exceeded of a destination unreachable with code 0. */
static __always_inline int become_exceeded(struct __sk_buff *skb)
{
	struct {
		__u8  type, code;
		__u16 sum;
	} h;

	if (bpf_skb_load_bytes(skb, ETH_HLEN + IP6_LEN, &h, sizeof(h)))
		return -1;
	h.type = ICMP6_EXCEEDED;
	h.sum = ~fold((__u64)(__u16)~h.sum + (__u16)~ICMP6_UNREACHABLE + ICMP6_EXCEEDED);
	return bpf_skb_store_bytes(skb, ETH_HLEN + IP6_LEN, &h, sizeof(h), 0);
}

/*
 * expire answers a packet that has no hop left. The kernel cannot: it has no way for an address that nobody has
 * resolved, and looks for that first, so that a traceroute would end here.
 */
static __always_inline int expire(struct __sk_buff *skb, struct packet *p, const struct router_config *c)
{
	struct addr from = { bpf_cpu_to_be64(c->locator), HOST_LOW };

	if (parse_transport(skb, p) || !answerable(p) || (p->proto == PROTO_ICMPV6 && p->type < ICMP6_ECHO))
		return drop(ROUTER_MALFORMED);
	if (!take_token(BUCKET_REFUSALS))
		return drop(ROUTER_LIMITED);
	if (refuse(skb, ETH_HLEN, p, &from, 0) || become_exceeded(skb))
		return drop(ROUTER_REWRITE);
	count(ROUTER_HOP_LIMIT);
	return bpf_redirect(skb->ifindex, 0);
}

/* forward sends the packet on to the same lower half at another locator. */
static __always_inline int forward(struct __sk_buff *skb, struct packet *p, __u64 locator, __u32 reason)
{
	struct addr to = { bpf_cpu_to_be64(locator), p->dst.lo }, from = p->src;

	if (rewrite(skb, ETH_HLEN, p, &from, &to))
		return drop(ROUTER_REWRITE);
	count(reason);
	return TC_ACT_UNSPEC;
}

/*
 * port_of fills in what the packet asks for. An echo has no port. Nor has a later fragment, and the first
 * one must meet the same instance, so all fragments use an entry for any port: UDP has one of its own.
 */
static __always_inline void port_of(const struct packet *p, struct table_key *key)
{
	if (p->proto == PROTO_ICMPV6 || (p->fragment != WHOLE && p->proto != PROTO_UDP))
		return;
	key->proto = p->proto;
	key->port = p->fragment == WHOLE ? bpf_ntohs(p->dport) : 0;
}

static __always_inline int resolve_first(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u32 ss)
{
	struct service_key name = { .suffix = bpf_be64_to_cpu(p->dst.lo), .ss = ss };

	if (p->hop_limit <= 1)
		return expire(skb, p, c);
	if (parse_transport(skb, p))
		return drop(ROUTER_MALFORMED);
	if (p->proto == PROTO_ICMPV6 && p->fragment != LATER_FRAGMENT && p->type != ICMP6_ECHO)
		return drop(ROUTER_ICMP);
	struct service_state *s = bpf_map_lookup_elem(&services, &name);

	if (!s)
		return answer(skb, p, c, UNREACHABLE_UNKNOWN, ROUTER_UNKNOWN);
	if (s->forbidden)
		return answer(skb, p, c, UNREACHABLE_FORBIDDEN, ROUTER_FORBIDDEN);
	if (!s->instances)
		return answer(skb, p, c, UNREACHABLE_NO_INSTANCE, ROUTER_NO_INSTANCE);
	struct choice choice = {
		.key = { .suffix = name.suffix, .ss = s->ss },
		.k = hash(bpf_be64_to_cpu(p->src.hi), bpf_be64_to_cpu(p->src.lo), retry_of(p)),
	};

	port_of(p, &choice.key);
	switch (pick(&choice)) {
	case CHOSEN:
		return forward(skb, p, choice.id, ROUTER_RESOLVED);
	case NO_WEIGHT:
		return answer(skb, p, c, UNREACHABLE_NO_INSTANCE, ROUTER_NO_INSTANCE);
	case TORN:
		return drop(ROUTER_TORN);
	}
	if (p->fragment == LATER_FRAGMENT)
		return drop(ROUTER_FRAGMENT);
	return answer(skb, p, c, UNREACHABLE_NO_PORT, ROUTER_NO_PORT);
}

/* answer_gone is for flows of this network: others have the kernel's own answer, for want of a route. */
static __always_inline int answer_gone(struct __sk_buff *skb, struct packet *p, const struct router_config *c)
{
	struct addr from = { bpf_cpu_to_be64(c->locator), HOST_LOW };

	if (!is_socket(&p->src) || bpf_be64_to_cpu(p->src.hi) >> 16 << 16 != c->as)
		return TC_ACT_UNSPEC;
	if (parse_transport(skb, p))
		return drop(ROUTER_MALFORMED);
	if (told_lately(&p->src) || !take_token(BUCKET_FAILS))
		return drop(ROUTER_GONE_LIMITED);
	if (fail(skb, p, &from))
		return drop(ROUTER_REWRITE);
	count(ROUTER_GONE);
	return bpf_redirect(skb->ifindex, 0);
}

/* bound sees to a packet for a locator: its host may have left it. */
static __always_inline int bound(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u64 locator)
{
	__u64 *to = bpf_map_lookup_elem(&redirects, &locator);

	if (!to && bpf_map_lookup_elem(&gone, &locator))
		return answer_gone(skb, p, c);
	if (!to)
		return TC_ACT_UNSPEC;
	if (parse_transport(skb, p))
		return drop(ROUTER_MALFORMED);
	return forward(skb, p, *to, ROUTER_REDIRECTED);
}

SEC("tc")
int resolve(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct router_config *c = bpf_map_lookup_elem(&config, &zero);
	struct packet p;

	if (!c || !c->ready || parse_network(skb, ETH_HLEN, &p))
		return TC_ACT_UNSPEC;
	__u64 high = bpf_be64_to_cpu(p.dst.hi);

	if (high >> 32 == c->services)
		return c->resolves ? resolve_first(skb, &p, c, high) : TC_ACT_UNSPEC;
	if (high >> 16 << 16 != c->as)
		return TC_ACT_UNSPEC;
	if (high != c->as)
		return bound(skb, &p, c, high);
	if (is_socket(&p.dst) || !c->resolves)
		return TC_ACT_UNSPEC;
	return resolve_first(skb, &p, c, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
