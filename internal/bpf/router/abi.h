/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* abi.h: all that crosses the C/Go line at a service router. All numbers are in host order. */
#ifndef SCAFFOLD_ROUTER_ABI_H
#define SCAFFOLD_ROUTER_ABI_H

#include <linux/types.h>

/* Raised when pinned maps of an older program could not be read by a newer one. */
#define ROUTER_ABI 2

#define FANOUT 16   /* resolve.Fanout */
#define MAX_DEPTH 8 /* resolve.MaxDepth */

struct router_config {
	__u64 as;         /* upper half of an address of this AS, host bits zero */
	__u64 locator;    /* of this router: answers come from its ::1 */
	__u64 generation; /* of the rules held here; for the daemon's next start */
	__u32 services;   /* the service prefix */
	__u32 ready;      /* enum ready: 0 until the first rules are complete: nothing is resolved or refused */
	__u32 abi;
	__u32 resolves; /* 0: a network router, which only sees to what was left */
};
_Static_assert(sizeof(struct router_config) == 40, "ABI");

enum ready { READY = 1, READY_SOURCES = 2 }; /* the sources of each port are known: others are dropped */

#define LOW_PORTS 4096

/* Who may send at a port. locator 0: a router is attached there, and anybody's packets come; of LOW_PORTS in leads. */
struct source_key {
	__u32 ifindex;
	__u32 pad;
	__u64 locator;
};
_Static_assert(sizeof(struct source_key) == 16, "ABI");

/* ss 0 stands for a packet that lost its ssID on the way into this AS, docs/protocol.md §2.1. */
struct service_key {
	__u64 suffix;
	__u32 ss;
	__u32 pad;
};
_Static_assert(sizeof(struct service_key) == 16, "ABI");

struct service_state {
	__u32 ss;
	__u32 instances;
	__u8  forbidden;
	__u8  pad[3];
};
_Static_assert(sizeof(struct service_state) == 12, "ABI");

/* port 0: any port of UDP or, with protocol 0, of whatever protocol. node 0: the root. */
struct table_key {
	__u64 node;
	__u64 suffix;
	__u32 ss;
	__u16 port;
	__u8  proto;
	__u8  pad;
};
_Static_assert(sizeof(struct table_key) == 24, "ABI");

/* One node of internal/core/resolve.Table. A root without entries: all weights are 0. */
struct table_node {
	__u64 id[FANOUT];     /* ascending */
	__u32 weight[FANOUT]; /* 1 to 2^25 - 1 */
	__u16 children;       /* bit i: entry i is a node, not an instance */
	__u8  count;
	__u8  shift; /* how far the weights were shifted right */
	__u8  pad[4];
};
_Static_assert(sizeof(struct table_node) == 200, "ABI");

struct bucket {
	__u64 tokens;
	__u64 filled; /* CLOCK_MONOTONIC, ns */
};
_Static_assert(sizeof(struct bucket) == 16, "ABI");

/* What the program counts; Go names them in counters.go, in this order. */
enum router_reason {
	ROUTER_NONE,
	ROUTER_RESOLVED,
	ROUTER_REDIRECTED,     /* to where a host has moved */
	ROUTER_UNKNOWN,        /* refused, code 0 */
	ROUTER_FORBIDDEN,      /* refused, code 1 */
	ROUTER_NO_INSTANCE,    /* refused, code 3 */
	ROUTER_NO_PORT,        /* refused, code 4 */
	ROUTER_LIMITED,        /* would have been refused, but the bucket was empty */
	ROUTER_HOP_LIMIT,      /* would leave the router with hop limit 0; answered */
	ROUTER_MALFORMED,      /* headers that do not parse, or a source that cannot be answered */
	ROUTER_ICMP,           /* ICMPv6 to a service, other than echo */
	ROUTER_FRAGMENT,       /* a later fragment for a service without an entry for any port */
	ROUTER_TORN,           /* a node was missing twice while the table changed */
	ROUTER_REWRITE,        /* a helper failed while the packet was changed */
	ROUTER_GONE,           /* to a locator at which nobody is, answered with FAIL */
	ROUTER_GONE_LIMITED,   /* the same, answered lately, or the bucket was empty */
	ROUTER_ALL_REFUSED,    /* refused, code 4: everybody in the table has returned the packet */
	ROUTER_SOURCE,         /* from a locator that is not at the port where it came in */
	ROUTER_SILENT,         /* resolved, past a host of this router that does not answer its probes */
	ROUTER_REASONS
};

#endif
