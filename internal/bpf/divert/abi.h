/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* abi.h: all that crosses the C/Go line at the ports of an agent of boost. Numbers are in host order unless they are bytes. */
#ifndef SCAFFOLD_DIVERT_ABI_H
#define SCAFFOLD_DIVERT_ABI_H

#include <linux/types.h>

/* Raised when pinned maps of an older program could not be read by a newer one. */
#define DIVERT_ABI 2

#define FRAME_MAX 1536 /* a SYN that fills an MTU of 1500, with its Ethernet header */
#define MAX_RULES 64   /* of lanes between one client prefix and one server prefix */

/* A connection as one of its ends sees it; IPv4 addresses are ::ffff:a.b.c.d. */
struct ends {
	__u8 local[16];
	__u8 remote[16];
	__u8 local_port[2];
	__u8 remote_port[2];
};
_Static_assert(sizeof(struct ends) == 36, "ABI");

/* What one end says of itself in its SYN or SYN-ACK: frame.Options. */
struct options {
	__u32 sequence;
	__u32 timestamp;
	__u16 mss;
	__u8  scale;
	__u8  has; /* HAS_… */
};
_Static_assert(sizeof(struct options) == 12, "ABI");

#define HAS_SACK 1
#define HAS_TIMESTAMPS 2
#define HAS_SCALE 4

/* A socket of ours, by its ends. The program writes what both ends said of themselves, each before what tells that it is there. */
struct session {
	__u64 made; /* CLOCK_MONOTONIC, ns */
	struct options peer; /* of the other end's SYN-ACK */
	struct options own;  /* of our SYN or SYN-ACK */
	__u8 finished; /* the stream out of this socket is whole: its FIN may leave */
	__u8 peer_known;
	__u8 own_known;
	__u8 pad[5];
};
_Static_assert(sizeof(struct session) == 40, "ABI");

enum hold { HOLD_UNDECIDED, HOLD_ACCEPTED, HOLD_PASSED };

/* A SYN that is held, by the ends as the server would see them. */
struct held {
	__u64 at; /* CLOCK_MONOTONIC, ns */
	__u32 sequence;
	__u32 ifindex;
	__u8  hold; /* enum hold */
	__u8  pad[7];
};
_Static_assert(sizeof(struct held) == 24, "ABI");

/* What the agent is told of a SYN that is held. */
struct held_syn {
	__u64 at;
	__u64 lane;
	struct ends ends;
	struct options options;
	__u32 ifindex;
	__u32 length; /* of the frame */
	__u8  frame[FRAME_MAX];
};
_Static_assert(sizeof(struct held_syn) == 72 + FRAME_MAX, "ABI");

struct divert_config {
	__u64 hold;  /* ns after which a SYN that nobody decided about passes */
	__u64 stale; /* ns after which an agent that was not heard counts as dead */
	__u32 mark;
	__u16 port; /* of the listeners at 127.0.0.1 and ::1 */
	__u16 abi;
};
_Static_assert(sizeof(struct divert_config) == 24, "ABI");

/* The longest prefix of a server's address, of one generation of lanes -> a class. */
struct server_key {
	__u32 prefixlen; /* bits of all that follows */
	__u32 generation;
	__u32 family; /* 4 or 6 */
	__u8  addr[16];
};
_Static_assert(sizeof(struct server_key) == 28, "ABI");

/* The longest prefix of a client's address within the class of the server -> what lanes there are. */
struct client_key {
	__u32 prefixlen;
	__u32 class;
	__u8  addr[16];
};
_Static_assert(sizeof(struct client_key) == 24, "ABI");

struct rule {
	__u64 lane;
	__u16 port; /* of the server; 0: any */
	__u16 mask; /* of the client's port */
	__u16 slot;
	__u16 pad;
};
_Static_assert(sizeof(struct rule) == 16, "ABI");

/* The first rule that fits is the lane. */
struct rules {
	__u32 count;
	__u32 pad;
	struct rule rule[MAX_RULES];
};
_Static_assert(sizeof(struct rules) == 8 + 16 * MAX_RULES, "ABI");

/* What the programs count; Go names them in counters.go, in this order. */
enum divert_reason {
	DIVERT_NONE,
	DIVERT_DELIVERED,        /* to a socket of ours */
	DIVERT_HELD,             /* dropped: a SYN that the agent was told of */
	DIVERT_HELD_AGAIN,       /* dropped: it was sent again before the agent decided */
	DIVERT_ACCEPTED,         /* a held SYN went to the listener */
	DIVERT_PASSED,           /* a held SYN went on, as the agent said */
	DIVERT_PASSED_AGAIN,     /* a SYN that went on before, sent again */
	DIVERT_PASSED_AWAY,      /* went on: the agent was not heard */
	DIVERT_PASSED_LATE,      /* went on: the agent did not decide */
	DIVERT_PASSED_FULL,      /* went on: as many are held as may */
	DIVERT_PASSED_UNREAD,    /* went on: the agent does not read fast enough */
	DIVERT_PASSED_PROTECTED, /* went on: with MD5 or AO */
	DIVERT_PASSED_FRAGMENT,  /* went on: a SYN in fragments */
	DIVERT_PASSED_MALFORMED, /* went on: options that do not parse */
	DIVERT_PASSED_LONG,      /* went on: a SYN with more data than is copied */
	DIVERT_NO_SOCKET,        /* went on: of a session whose socket is gone */
	DIVERT_NOT_ASSIGNED,     /* went on: the kernel refused to give it to the socket */
	DIVERT_NO_HOLD,          /* a SYN came back from the agent that is no longer held */
	DIVERT_NO_LISTENER,      /* dropped: a held SYN for a listener that is gone */
	DIVERT_ERROR_DELIVERED,  /* an ICMP error about a segment of a socket of ours, to the kernel */
	DIVERT_RESET,            /* a FIN of an unfinished session left as RST */
	DIVERT_REWRITE,          /* dropped: such a FIN that could not be changed */
	DIVERT_REASONS
};

#endif
