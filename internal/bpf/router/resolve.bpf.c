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
#include "again.h"
#include "fail.h"

#define TOKENS 20000 /* answers of a kind a second and CPU, and as many at once */
#define TOKEN_NS (1000000000ULL / TOKENS)

#define ICMP6_EXCEEDED 3
#define UNREACHABLE_UNKNOWN 0
#define UNREACHABLE_FORBIDDEN 1
#define UNREACHABLE_NO_INSTANCE 3
#define UNREACHABLE_NO_PORT 4

/* take_from says whether the bucket has a token left. */
static __always_inline int take_from(struct bucket *b)
{
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

/* take_token says whether this CPU may send another answer of the kind. */
static __always_inline int take_token(__u32 kind)
{
	struct bucket *b = bpf_map_lookup_elem(&buckets, &kind);

	return b && take_from(b);
}

/* answerable: RFC 4443 §2.4 (e) forbids errors to multicast and unspecified sources. */
static __always_inline int answerable(const struct packet *p)
{
	return (p->src.hi || p->src.lo) && *(__u8 *)&p->src.hi != 0xff;
}

/*
 * to_sender sends an answer off: to where the packet came from, or, where a host has returned that, by the kernel's
 * routes, since its sender is elsewhere.
 */
static __always_inline int to_sender(struct __sk_buff *skb, const struct packet *p)
{
	return retry_of(p) ? TC_ACT_UNSPEC : bpf_redirect(skb->ifindex, 0);
}

static __always_inline int answer(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u8 code,
				  __u32 reason)
{
	struct addr from = { bpf_cpu_to_be64(c->locator), HOST_LOW };

	if (!answerable(p))
		return drop(ROUTER_MALFORMED);
	if (!take_token(BUCKET_REFUSALS))
		return drop(ROUTER_LIMITED);
	if (refuse(skb, ETH_HLEN, p, &from, code, 0))
		return drop(ROUTER_REWRITE);
	count(reason);
	return to_sender(skb, p);
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
	if (refuse(skb, ETH_HLEN, p, &from, 0, 0) || become_exceeded(skb))
		return drop(ROUTER_REWRITE);
	count(ROUTER_HOP_LIMIT);
	return to_sender(skb, p);
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

/*
 * choose: a packet that was returned goes to somebody else, and so does one for a silent host, as if that had returned it:
 * word is what it then leaves with. That costs up to sixteen draws, and anybody can send such labels; beyond the bucket
 * there is one draw, which may meet who has refused.
 */
static __always_inline int choose(const struct packet *p, struct choice *choice, __u32 *word)
{
	__u64 high = bpf_be64_to_cpu(p->src.hi), low = bpf_be64_to_cpu(p->src.lo);
	__u32 zero = 0;
	struct again *a;
	int result;

	*word = p->word;
	if (!retry_of(p)) {
		choice->k = hash(high, low, 0);
		result = pick(choice);
		if (result != CHOSEN || !is_silent(choice->id))
			return result;
	}
	a = bpf_map_lookup_elem(&agains, &zero);
	if (a && take_from(&a->bucket)) {
		a->key = choice->key;
		result = pick_again(a, high, low, label_of(p));
		choice->id = a->id;
		if (result >> DRAW_SHIFT)
			*word = with_refusal(p->word, bpf_cpu_to_be64((__u64)(a->refuser >> 16)), result >> DRAW_SHIFT);
		return result & ((1 << DRAW_SHIFT) - 1);
	}
	choice->k = hash(high, low, retry_of(p));
	return pick(choice);
}

/* lead sends a first packet to who was chosen for it, by way of the silent hosts that the word tells of. */
static __always_inline int lead(struct __sk_buff *skb, struct packet *p, __u64 locator, __u32 word, int passed)
{
	if (set_word(skb, ETH_HLEN, p, word))
		return drop(ROUTER_REWRITE);
	return forward(skb, p, locator, passed ? ROUTER_SILENT : ROUTER_RESOLVED);
}

static __always_inline int resolve_first(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u32 ss)
{
	struct service_key name = { .suffix = bpf_be64_to_cpu(p->dst.lo), .ss = ss };
	__u32 word;

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
	struct choice choice = { .key = { .suffix = name.suffix, .ss = s->ss } };

	port_of(p, &choice.key);
	switch (choose(p, &choice, &word)) {
	case CHOSEN:
		return lead(skb, p, choice.id, word, word != p->word);
	case ALL_OUT:
		return answer(skb, p, c, UNREACHABLE_NO_PORT, ROUTER_ALL_REFUSED);
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

/*
 * unheard sees to a first packet for a host here that does not answer: another router chose it, which knows nothing of that.
 * One that a client sent to this host itself is its own affair, docs/protocol.md §3.5.
 */
static __always_inline int unheard(struct __sk_buff *skb, struct packet *p, __u64 locator)
{
	struct choice choice = { .key = { .suffix = bpf_be64_to_cpu(p->dst.lo) } };
	struct service_key name = { .suffix = choice.key.suffix };
	struct service_state *s = bpf_map_lookup_elem(&services, &name);
	__u32 word, retry = retry_of(p);

	if (!s || retry >= MAX_RETRY - 1 || parse_transport(skb, p))
		return TC_ACT_UNSPEC;
	choice.key.ss = s->ss;
	port_of(p, &choice.key);
	if (choose(p, &choice, &word) != CHOSEN || choice.id == locator || is_silent(choice.id))
		return TC_ACT_UNSPEC;
	if (word == p->word) /* by another table than the router's that chose: two could send it to and fro */
		word = with_refusal(p->word, bpf_cpu_to_be64(locator), retry + 1);
	return lead(skb, p, choice.id, word, 1);
}

/*
 * give_back returns such a packet in the host's name, where this router resolves nothing: to a service router. It does not know
 * whether anybody else serves; where nobody does the packet is refused. One that somebody has returned already is left alone:
 * its label has room for one name, and who returned it would be chosen again.
 */
static __always_inline int give_back(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u64 locator)
{
	if (retry_of(p))
		return TC_ACT_UNSPEC;
	if (parse_transport(skb, p))
		return drop(ROUTER_MALFORMED);
	if (set_word(skb, ETH_HLEN, p, with_refusal(p->word, bpf_cpu_to_be64(locator), 1)))
		return drop(ROUTER_REWRITE);
	return forward(skb, p, c->as, ROUTER_SILENT);
}

/* bound sees to a packet for a locator: its host may have left it, or answer nobody. */
static __always_inline int bound(struct __sk_buff *skb, struct packet *p, const struct router_config *c, __u64 locator)
{
	__u64 *to = bpf_map_lookup_elem(&redirects, &locator);

	if (!to && bpf_map_lookup_elem(&gone, &locator))
		return answer_gone(skb, p, c);
	if (!to && !is_socket(&p->dst) && p->dst.lo != HOST_LOW && is_silent(locator))
		return c->resolves ? unheard(skb, p, locator) : give_back(skb, p, c, locator);
	if (!to)
		return TC_ACT_UNSPEC;
	if (parse_transport(skb, p))
		return drop(ROUTER_MALFORMED);
	return forward(skb, p, *to, ROUTER_REDIRECTED);
}

/*
 * foreign: a packet of this AS that comes in at a host's port, from a locator that no host there has or had lately. What
 * comes from a router's port may be from anywhere. A first packet that a host returns, docs/protocol.md §3.3, has its
 * client's address: that host is told by its flow label, and has to be there.
 */
static __always_inline int foreign(struct __sk_buff *skb, const struct packet *p, const struct router_config *c, int named)
{
	struct source_key key = { .ifindex = skb->ifindex };
	__u64 from = bpf_be64_to_cpu(p->src.hi);
	__u32 port = skb->ifindex;

	if (!(c->ready & READY_SOURCES) || from >> 16 << 16 != c->as)
		return 0;
	__u8 *leads_on = bpf_map_lookup_elem(&leads, &port);

	if (leads_on ? *leads_on : !!bpf_map_lookup_elem(&sources, &key))
		return 0;
	key.locator = from;
	if (bpf_map_lookup_elem(&sources, &key))
		return 0;
	key.locator = c->as | label_of(p) >> RETRY_BITS;
	return !named || !retry_of(p) || !bpf_map_lookup_elem(&sources, &key);
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
	int named = high >> 32 == c->services;

	if ((named || high >> 16 << 16 == c->as) && foreign(skb, &p, c, named))
		return drop(ROUTER_SOURCE);
	if (named)
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
