/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* abi.h: all that crosses the C/Go line at the host's edge. Network-order fields are byte arrays. */
#ifndef SCAFFOLD_ABI_H
#define SCAFFOLD_ABI_H

#include <linux/types.h>

/* Raised when a pinned map of an older program could not be read by a newer one. */
#define HOST_ABI 4

#define MESSAGE_PORT 23727 /* docs/protocol.md §4 */

struct host_config {
	__u32 abi;
	__u32 pad;
	__u64 heartbeat;  /* CLOCK_MONOTONIC, ns: when the daemon last waited for events */
	__u64 secret[2];  /* SipHash key; whoever knows it can name every socketID */
};
_Static_assert(sizeof(struct host_config) == 32, "ABI");

/* One interface with one locator. A flow names the slot that it leaves by. */
struct slot {
	__u32 ifindex;    /* 0: retired, or free when there is no locator either */
	__u16 mtu;        /* host order; 0: no clamp */
	__u8  quiet;      /* of one that is retired: its connections' packets are kept back until they have moved */
	__u8  pad;
	__u8  locator[8]; /* kept when retired: flows go on under it */
	__u8  router[16]; /* link-local; zero where the link needs none */
	__u64 retired;    /* CLOCK_MONOTONIC, ns */
};
_Static_assert(sizeof(struct slot) == 40, "ABI");

#define MAX_SLOTS 8
#define NO_SLOT 0xff      /* of a flow that is blocked */
#define MAX_LOCATORS 16

/* Where the host is. One array element: a hash lookup costs more than it. */
struct place {
	struct slot slots[MAX_SLOTS];
	__u8 locators[MAX_LOCATORS][8]; /* accepted at ingress; zero: free */
};
_Static_assert(sizeof(struct place) == 448, "ABI");

/* A flow as its socket sees it. What the key must ignore is zero. */
struct flow_key {
	__u8 local[16];
	__u8 remote[16];
	__u8 lport[2];    /* zero: UDP server (its child socket may answer from another port), echo server */
	__u8 rport[2];    /* zero: echo client; UDP client of the program before, whose flow had all ports of the service */
	__u8 proto;
	__u8 pad;
	__u16 guest;      /* host order; the guest's number, 0: the host itself */
};
_Static_assert(sizeof(struct flow_key) == 40, "ABI");

#define ANSWER_PORTS 16 /* a power of two */

/*
 * The ports from which a client's socket was answered by the peers of its flows to a service, where they are others than
 * were asked; or from which a server's flow was answered. In each number, from the lowest bits up: the port; the port that
 * was asked, of a server's flow zero, both as packets have them; and the last half of the flow's birth. Zero: none.
 */
struct answer_ports {
	__u64 next; /* how many were written: which is written next */
	__u64 port[ANSWER_PORTS];
};
_Static_assert(sizeof(struct answer_ports) == 136, "ABI");

#define MAX_GUESTS 4096 /* numbers; 0 is the host itself */

/* A network namespace of this machine behind the edge, keyed by the interface here that leads to it. */
struct guest {
	__u8  identity[16];
	__u32 number;
	__u32 pad;
};
_Static_assert(sizeof(struct guest) == 24, "ABI");

/* Where the sockets of a guest are, by its number. */
enum guest_listens { GUEST_UNKNOWN = 0, GUEST_NAMED = 1, GUEST_WILDCARD = 2 }; /* which serve: on a service's own address, or on any */
struct guest_space {
	__u32 netns;      /* as this namespace numbers it (ip netns list-id) */
	__u32 listens;
};
_Static_assert(sizeof(struct guest_space) == 8, "ABI");

#define OWNERS 0xffffffff /* as nth: how many there are */

/* Who serves a triple, where guests do: the nth of them. Without port and protocol: anything of the service. */
struct owner_key {
	__u8  suffix[8];
	__u8  port[2];
	__u8  proto;
	__u8  pad;
	__u32 nth;
};
_Static_assert(sizeof(struct owner_key) == 16, "ABI");

enum flow_role { ROLE_CLIENT = 1, ROLE_SERVER = 2 };

/*
 * docs/protocol.md §3. BINDING lasts a few instructions: one CPU writes the peer. BLOCKED: §6.4. LOST: of a
 * socketID, an attempt to connect that was not the first to be answered.
 */
enum flow_state {
	STATE_CONNECTING = 1, STATE_BINDING = 2, STATE_BOUND = 3, STATE_HALF_OPEN = 4, STATE_BLOCKED = 6, STATE_LOST = 7
};

/* Ends seen so far, bits. */
enum flow_end { END_FIN_OUT = 1, END_FIN_IN = 2, END_RST = 4 };

enum datagrams { DATAGRAMS_BOUND = 0, DATAGRAMS_UNBOUND = 1, DATAGRAMS_UNSET = 2 };

/* What egress needs per packet, and what there is once per flow. */
struct egress_flow {
	__u8  socket[8];  /* under which the flow leaves; one of its ingress entries */
	__u8  peer[16];   /* on the wire; the service address until bound */
	__u64 seen;       /* CLOCK_MONOTONIC, ns */
	__u32 state;
	__u8  isn[4];
	__u8  alt_port[2]; /* the last local port of a UDP server's answers */
	__u8  role;
	__u8  proto;
	__u8  dscp;        /* 0: leave the socket's own */
	__u8  datagrams;   /* of a client's TCP flow: how often its SYN was sent again */
	__u8  end;         /* seen under any of its socketIDs */
	__u8  slot;
	__u64 owner;       /* cookie of the socket of a client's datagram flow, which ends with it; 0: unknown */
	__u8  newest[8];   /* the head of its ingress entries, each of which names the next older one */
	__u8  birth[8];    /* its first socketID: what tells it from a later flow of the same tuple */
	__u8  stable[16];  /* of a client's: docs/protocol.md §3.3 */
	__u8  lport[2];    /* the server's port of a UDP flow, which the key ignores */
	__u8  retried;     /* Steer began it again: its answer is an event */
	__u8  watch;       /* WATCH_*, for the socketIDs that it gets */
	__u8  told;        /* about when the daemon was told that its process died, death.h; 0: never */
	__u8  born[3];     /* CLOCK_MONOTONIC in 2^29 ns, the low byte first; it begins anew after 104 days. 0: unknown */
};
_Static_assert(sizeof(struct egress_flow) == 96, "ABI");

/* What ingress needs per packet: one for each socketID of a flow. key is the egress map's. */
struct ingress_flow {
	struct flow_key key;
	__u8  peer[16];   /* the only source that is accepted once bound; zero: any peer */
	__u64 seen;
	__u32 state;
	__u8  isn[4];     /* WATCH_DRAIN: of the FIN that is held back */
	__u8  lport[2];
	__u8  alt_port[2];
	__u8  role;
	__u8  datagrams;
	__u8  slot;       /* from which an attempt to connect left */
	__u8  watch;      /* WATCH_*: what else is to be done with each packet */
	__u8  older[8];   /* the socketID before; zero: none */
	__u8  birth[8];
};
_Static_assert(sizeof(struct ingress_flow) == 96, "ABI");

/* What arrives begins the connection, adopt.h; it may acknowledge a dead process's last word, death.h; it is a new peer's first. */
enum watch { WATCH_ADOPT = 1, WATCH_DRAIN = 2, WATCH_HEAR = 4, WATCH_UNTOLD = 8 };

#define MAX_ALIASES 16 /* ingress entries of one flow */

enum verb {
	VERB_ACCEPT = 1, VERB_BIND = 2, VERB_RETRY = 3, VERB_BLOCK = 4, VERB_UNBIND = 5, VERB_FORGET = 6, VERB_DROP = 7
};

/* A change of one flow, see steer.go. */
struct step {
	struct flow_key key;
	__u8  socket[8];
	__u8  peer[16];
	__u8  birth[8];   /* of the flow that is meant; zero: of any */
	__u8  verb;
	__u8  slot;       /* of the local address; NO_SLOT: as before */
	__u8  pad[2];
	__s32 result;     /* 0 or a negative errno */
};
_Static_assert(sizeof(struct step) == 80, "ABI");

#define MAX_STEPS 256 /* of one run */

/* A bucket of tokens: how much the daemon is given of what anybody can send. */
struct meter {
	__u64 at;         /* CLOCK_MONOTONIC, ns */
	__s32 tokens;
	__u32 empty;      /* CLOCK_MONOTONIC in 2^30 ns: when METER_HALF had none last; 0: never */
};
_Static_assert(sizeof(struct meter) == 16, "ABI");

enum meters { METER_HALF = 3, METERS = 4 }; /* the others are of programs before */

/* What the daemon is given of each kind, meter.h; and how many flows get an entry that a flood may evict. */
enum budget {
	BUDGET_UNSOLICITED = 0,  /* messages to socketIDs that nobody has */
	BUDGET_STRAYS = 1,     /* packets to such socketIDs */
	BUDGET_UNRESOLVED = 2, /* messages to services */
	BUDGET_ASKED = 3,      /* answers to what this host asked or offered */
	BUDGET_FLOWS = 4,      /* messages to flows */
	BUDGET_SPARE = 5,      /* entries of datagram flows in the maps of half-open connections */
	BUDGETS = 16           /* with room */
};

#define SOURCES 65536 /* host numbers of an AS; 0, which no host has: everybody else */
#define DATAGRAMS SOURCES /* in the map peers, behind them: all datagram flows */

#define MAX_TAGS 4096 /* cookie.h */

#define SESSION_MAX 512

/* What the daemon keeps of a flow; the programs do not read it. */
struct session {
	__u16 len;
	__u8  data[SESSION_MAX];
};
_Static_assert(sizeof(struct session) == 514, "ABI");

struct session_key {
	__u8 name[17];
};

/* What a suffix means on this host. */
struct service {
	__u8  upper[8];   /* service prefix and ssID */
	__u32 live;       /* admitted (protocol, port) pairs */
	__u32 restricted; /* first packets are taken from those on its access list alone */
};
_Static_assert(sizeof(struct service) == 16, "ABI");

/* Keyed by the longest prefix; bits counts those of the suffix, too. resolve.AccessList is the oracle. */
struct access_key {
	__u32 bits;       /* host order, 64 to 128 */
	__u8 suffix[8];
	__u8 locator[8];
};
_Static_assert(sizeof(struct access_key) == 20, "ABI");

/* How a triple is admitted. LISTENING: while a socket of this namespace has the port, which needs no daemon to know. */
enum admission { ADMITTED = 1, ADMITTED_LISTENING = 2 };

/* What the daemon says of a triple to clients that ask this host itself, ask.h; nothing: what admission says. */
enum judgement { JUDGED_LATER = 1, JUDGED_UNFIT = 2 };

struct instance_key {
	__u8 suffix[8];
	__u8 port[2];
	__u8 proto;
	__u8 pad[5];
};
_Static_assert(sizeof(struct instance_key) == 16, "ABI");

#define RECENT_PEERS 8 /* of a service: hosts that this host, or one of its guests, has flows with */

struct recent_peer_key {
	__u8  service[16];
	__u16 guest;      /* host order; 0: the host itself */
	__u16 nth;        /* host order; follows from the locator */
	__u32 pad;
};
_Static_assert(sizeof(struct recent_peer_key) == 24, "ABI");

struct recent_peer {
	struct flow_key flow; /* the first of those that are there: it tells where the peer is now */
	__u8  locator[8];     /* of the peer when the last of them began */
	__u64 at;             /* CLOCK_MONOTONIC, ns: when that was */
};
_Static_assert(sizeof(struct recent_peer) == 56, "ABI");

/* Keyed by the whole service address. */
struct policy {
	__u8 datagrams;
	__u8 dscp;
	__u8 continues; /* connections whose process dies go on at another instance */
	__u8 pad;
};
_Static_assert(sizeof(struct policy) == 4, "ABI");

enum adopt_options { ADOPT_SACK = 1, ADOPT_TIMESTAMPS = 2, ADOPT_SCALES = 4 };

/* A connection that is to begin in the middle, keyed by its flow's first socketID, docs/protocol.md §6.5. */
struct adoption {
	__u64 until;        /* CLOCK_MONOTONIC, ns */
	__u64 begun;        /* the same: when a segment was last let pass to begin it; 0: never */
	__u8  seq[4];       /* of the segment that begins it */
	__u8  ack[4];
	__u32 tsval;        /* host order, as are all that follow */
	__u32 tsecr;
	__u16 mss;
	__u8  client_scale;
	__u8  server_scale;
	__u8  options;
	__u8  pad[3];
};
_Static_assert(sizeof(struct adoption) == 40, "ABI");

struct fragment_key {
	__u8  src[16];
	__u8  dst[16];
	__u8  id[4];
	__u32 pad;
};
_Static_assert(sizeof(struct fragment_key) == 40, "ABI");

struct fragment {
	__u8 src[16];
	__u8 dst[16];
	__u32 word;      /* network order as it stood in the first fragment; 0: leave */
	__u8  slot;
	__u8  pad[3];
};
_Static_assert(sizeof(struct fragment) == 40, "ABI");

enum event_kind { EVENT_REFUSED = 1, EVENT_MESSAGE = 2, EVENT_STRAY = 3, EVENT_ANSWERED = 4, EVENT_DIED = 5 };

#define EVENT_DATA 1536

/* An event is this header and len bytes of an IPv6 packet. */
struct event {
	struct flow_key key; /* of the flow, zero when there is none */
	__u8  socket[8];
	__u64 at;            /* CLOCK_MONOTONIC, ns */
	__u32 ifindex;
	__u16 len;
	__u8  kind;
	__u8  code;          /* ICMPv6 code of a refusal; a reset counts as 4 */
	__u8  isn[4];
	__u16 refuser;       /* of a reset: the number of the host that sent it */
	__u16 pad;
};
_Static_assert(sizeof(struct event) == 72, "ABI");

#endif
