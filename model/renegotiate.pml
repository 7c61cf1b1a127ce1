/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Renegotiation of one flow, docs/protocol.md §6.2-6.4: the client's end 0, the server's end 1 and, with
 * COPIES, a copy 2 of the client's end that comes up in another place with all that the original knew.
 *
 * The network is a set of messages: any of them is next, any is lost or comes twice. Who sends to a place
 * that an end left reaches it (redirects). socketIDs and locators are numbers, each end makes its own.
 * A chain is a set of socketIDs: an end numbers them upwards, so "the ones before" are the lower bits.
 *
 * MOVES0, MOVES1, MOVES2: moves of each end. LOSSES, COPIED: messages lost and duplicated; 255 is any number.
 * BUG_KEEPS_SOCKET: the end that stays keeps its socketID and goes by epochs: a bug that the model has to find.
 * CLOSES: the client's end may close at any time.
 * TRACE: trace.pml, written by a test from runs of the code, takes the place of the world.
 */
#ifndef MOVES0
#define MOVES0 2
#endif
#ifndef MOVES1
#define MOVES1 0
#endif
#ifndef MOVES2
#define MOVES2 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef COPIED
#define COPIED 1
#endif
#ifndef ROOM
#define ROOM 6
#endif
#ifndef NUMBERS
#define NUMBERS 9 /* socketIDs of one end: 3 * 9 bits fit an int */
#endif
#define PLACES 16 /* locators of one end */

mtype = { Connecting, Bound, Moving, Answering, Blocked, Asking, Confirming, Closed };
mtype = { RSYN, RSYNACK, RACK, FAIL, PROBE };

typedef side {
	mtype state;
	byte epoch;    /* moves of this end */
	byte seen;     /* the last epoch of the peer that it took */
	byte peerSeen; /* the last epoch of this end that the peer took */
	byte loc; byte sock;
	byte locs; byte socks; /* how many it made */
	byte peerLoc; byte peerSock;
	int chain; /* own socketIDs since the peer last confirmed one, that one included */
	int mine;  /* own socketIDs that are accepted */
}

side e[3];

/* kind, to: place, toward: which end answers there; from, epoch, seen, sock, quote, chain as in a claim.
   FAIL: sock is the receiver's, quote the sender's as the receiver knows it. PROBE: sock is the sender's. */
chan net = [ROOM] of { mtype, byte, byte, byte, byte, byte, byte, int };

byte moves[3];
byte losses, copied;
bool exists2; /* the copy was made */
bool wasReset;

#define bit(s) (1 << (s))
#define has(set, s) ((set) & bit(s))
#define alive(i) (e[i].state != Closed)

/* step is a legal move of the code's table; a test compares the two. */
inline step(i, a, b) { assert(e[i].state == a); e[i].state = b }

inline standing(i) {
	if
	:: e[i].peerSeen < e[i].epoch ->
		if
		:: e[i].state == Bound -> step(i, Bound, Moving)
		:: e[i].state == Answering -> step(i, Answering, Moving)
		:: e[i].state == Moving -> skip
		fi
	:: e[i].peerSeen >= e[i].epoch && e[i].chain != 0 ->
		if
		:: e[i].state == Bound -> step(i, Bound, Answering)
		:: e[i].state == Moving -> step(i, Moving, Answering)
		:: e[i].state == Answering -> skip
		fi
	:: else ->
		if
		:: e[i].state == Moving -> step(i, Moving, Bound)
		:: e[i].state == Answering -> step(i, Answering, Bound)
		:: e[i].state == Bound -> skip
		fi
	fi
}

inline close(i) {
	if
	:: e[i].state == Bound -> step(i, Bound, Closed)
	:: e[i].state == Moving -> step(i, Moving, Closed)
	:: e[i].state == Answering -> step(i, Answering, Closed)
	fi;
	e[i].chain = 0; e[i].mine = 0
}

/* The network is a set: a message that is under way already is not sent again; a full one loses. */
inline emit(mk, mto, mfrom, mep, ms, mso, mq, mch) {
	if
	:: net??[mk, eval(mto), eval(mfrom), eval(mep), eval(ms), eval(mso), eval(mq), eval(mch)] -> skip
	:: else ->
		if
		:: nfull(net) -> net!!mk, mto, mfrom, mep, ms, mso, mq, mch
		:: full(net) -> assert(LOSSES == 255) /* a bounded run must not lose silently */
		fi
	fi
}

inline claim(kind, i) {
	emit(kind, e[i].peerLoc, e[i].loc, e[i].epoch, e[i].seen, e[i].sock, e[i].peerSock, e[i].chain)
}

inline fresh(i) {
	e[i].chain = e[i].chain | bit(e[i].sock);
	e[i].sock = i * NUMBERS + e[i].socks;
	e[i].socks++;
	assert(e[i].socks <= NUMBERS);
	e[i].mine = e[i].mine | bit(e[i].sock)
}

inline move(i) {
	e[i].epoch++;
	e[i].loc = i * PLACES + e[i].locs;
	e[i].locs++;
	fresh(i);
	if
	:: e[i].state == Bound -> step(i, Bound, Moving)
	:: e[i].state == Answering -> step(i, Answering, Moving)
	:: e[i].state == Moving -> skip
	fi;
	claim(RSYN, i)
}

inline retransmit(i) {
	if
	:: e[i].state == Moving -> claim(RSYN, i)
	:: e[i].state == Answering -> claim(RSYNACK, i)
	:: else -> skip /* unreached: here timers fire in these two states only */
	fi
}

/* The peer quoted q: it will never name an earlier one. */
inline heard(i, q) {
	if
	:: has(e[i].chain, q) -> e[i].chain = e[i].chain & ~(bit(q) - 1)
	:: else -> skip
	fi;
	if
	:: q == e[i].sock -> e[i].chain = 0
	:: else -> skip
	fi;
	standing(i)
}

#define newer(i, ep, s) (ep > e[i].seen || (ep == e[i].seen && s > e[i].peerSeen))
#define same(i, at, ep, s, so) (ep == e[i].seen && s == e[i].peerSeen && at == e[i].peerLoc && so == e[i].peerSock)
#define outstanding(i, q) (q == e[i].sock || has(e[i].chain, q))
#ifdef BUG_KEEPS_SOCKET
#define lineage(i, so, ch) true
#else
#define lineage(i, so, ch) (so == e[i].peerSock || has(ch, e[i].peerSock))
#endif

inline weigh(i, kind, from, ep, s, so, q, ch) {
	if
	:: s > e[i].epoch -> skip
	:: s <= e[i].epoch && outstanding(i, q) && newer(i, ep, s) && lineage(i, so, ch) ->
		moved = ep > e[i].seen;
		e[i].peerLoc = from; e[i].peerSock = so;
		e[i].seen = ep; e[i].peerSeen = s;
		heard(i, q);
		if
#ifndef BUG_KEEPS_SOCKET
		:: moved -> fresh(i); standing(i); claim(RSYNACK, i)
#endif
		:: else -> reply(i, kind)
		fi
	:: s <= e[i].epoch && has(e[i].mine, q) && same(i, from, ep, s, so) ->
		heard(i, q);
		reply(i, kind)
	:: else ->
		if
		:: so != e[i].peerSock && kind != RACK -> emit(FAIL, from, e[i].loc, 0, 0, so, q, 0)
		:: else -> skip
		fi
	fi
}

inline reply(i, kind) {
	if
	:: kind == RSYN -> claim(RSYNACK, i)
	:: kind == RSYNACK -> claim(RACK, i)
	:: kind == RACK -> skip
	fi
}

inline handle(i, kind, from, ep, s, so, q, ch) {
	if
	:: kind == FAIL ->
		if
		:: alive(i) && so == e[i].sock && q == e[i].peerSock -> close(i); wasReset = true
		:: else -> skip
		fi
	:: kind == PROBE -> /* from where it holds its peer, it is answered, which changes nothing */
		if
		:: alive(i) && (from != e[i].peerLoc || so != e[i].peerSock) -> emit(FAIL, from, e[i].loc, 0, 0, so, q, 0)
		:: else -> skip /* unreached: here only who is not the peer asks */
		fi
	:: kind != FAIL && kind != PROBE && !alive(i) ->
		if
		:: kind != RACK -> emit(FAIL, from, e[i].loc, 0, 0, so, q, 0)
		:: else -> skip
		fi
	:: else -> weigh(i, kind, from, ep, s, so, q, ch)
	fi
}

inline begin() {
	byte z;
	z = 0;
	do
	:: z < 2 ->
		e[z].state = Bound;
		e[z].loc = z * PLACES; e[z].locs = 1;
		e[z].sock = z * NUMBERS; e[z].socks = 1;
		e[z].mine = bit(z * NUMBERS);
		e[z].peerLoc = (1 - z) * PLACES; e[z].peerSock = (1 - z) * NUMBERS;
		z++
	:: else -> break
	od;
	e[2].state = Closed;
	z = 0
}

#define pair(a) (e[a].state == Bound && e[1].state == Bound \
	&& e[a].peerLoc == e[1].loc && e[a].peerSock == e[1].sock \
	&& e[1].peerLoc == e[a].loc && e[1].peerSock == e[a].sock)
#define nobody (e[0].state == Closed && e[1].state == Closed && e[2].state == Closed)

#ifdef CLOSES
#define agreed (pair(0) || nobody || (e[0].state == Closed && e[1].state == Bound))
#else
#define agreed ((pair(0) && e[2].state == Closed) || (pair(2) && e[0].state == Closed))
#endif

#ifdef TRACE
#include "trace.pml"
#else
active proctype world() {
	mtype k, wk;
	byte from, ep, s, so, q, to, wto, wfrom, wep, ws, wso, wq, at, n, c;
	int ch, wch;
	bool moved;

	d_step { begin() };
end:	do
	:: atomic { moves[0] < MOVES0 && alive(0) -> moves[0]++; move(0) }
	:: atomic { moves[1] < MOVES1 && alive(1) -> moves[1]++; move(1) }
#if MOVES2 > 0
	:: atomic { exists2 && moves[2] < MOVES2 && alive(2) -> moves[2]++; move(2) }
	:: atomic { !exists2 && alive(0) ->
		exists2 = true;
		e[2].state = e[0].state; e[2].epoch = e[0].epoch; e[2].seen = e[0].seen; e[2].peerSeen = e[0].peerSeen;
		e[2].sock = e[0].sock; e[2].peerLoc = e[0].peerLoc; e[2].peerSock = e[0].peerSock;
		e[2].chain = e[0].chain; e[2].mine = e[0].mine;
		moves[2]++; move(2)
	   }
#endif
#ifdef CLOSES
	:: atomic { alive(0) -> close(0) }
#endif
	/* A message, any one, arrives, arrives and stays, or is lost. */
	:: atomic { nempty(net) ->
		at = 0;
		do
		:: at + 1 < len(net) -> at++
		:: break
		od;
		skip;
		d_step {
			n = len(net); c = 0;
			do
			:: c < n ->
				net?k, to, from, ep, s, so, q, ch;
				if
				:: c == at -> wk = k; wto = to; wfrom = from; wep = ep; ws = s; wso = so; wq = q; wch = ch
				:: else -> net!k, to, from, ep, s, so, q, ch
				fi;
				c++
			:: else -> break
			od;
			n = 0; c = 0; at = 0;
			k = 0; to = 0; from = 0; ep = 0; s = 0; so = 0; q = 0; ch = 0
		};
		if
		:: losses < LOSSES ->
			if
			:: LOSSES < 255 -> losses++
			:: else -> skip
			fi
		:: copied < COPIED ->
			if
			:: COPIED < 255 -> copied++
			:: else -> skip
			fi;
			net!!wk, wto, wfrom, wep, ws, wso, wq, wch;
			handle((wto / PLACES), wk, wfrom, wep, ws, wso, wq, wch)
		:: handle((wto / PLACES), wk, wfrom, wep, ws, wso, wq, wch)
		fi;
		wk = 0; wto = 0; wfrom = 0; wep = 0; ws = 0; wso = 0; wq = 0; wch = 0; moved = 0
	   }
	/* Timers: early ones do what a duplicate does, so here they fire when nothing is under way. */
	:: atomic { empty(net) && (e[0].state == Moving || e[0].state == Answering) -> retransmit(0) }
	:: atomic { empty(net) && (e[1].state == Moving || e[1].state == Answering) -> retransmit(1) }
	:: atomic { empty(net) && (e[2].state == Moving || e[2].state == Answering) -> retransmit(2) }
	/* An end whose data is met by silence asks. */
	:: atomic { empty(net) && exists2 && e[0].state == Bound && e[1].state == Bound && !pair(0) ->
		emit(PROBE, e[0].peerLoc, e[0].loc, 0, 0, e[0].sock, e[0].peerSock, 0) }
	:: atomic { empty(net) && exists2 && e[2].state == Bound && e[1].state == Bound && !pair(2) ->
		emit(PROBE, e[2].peerLoc, e[2].loc, 0, 0, e[2].sock, e[2].peerSock, 0) }
	od
}

/* With nothing under way and nobody asking, the two ends believe in each other, whatever was lost. */
#if MOVES2 == 0 && !defined(CLOSES)
ltl consistent { [] ((len(net) == 0 && e[0].state == Bound && e[1].state == Bound) -> pair(0)) }
ltl kept { [] !wasReset }
#endif
/* Once the peer and a copy have confirmed each other, no other copy takes the flow away. */
ltl commits { [] (pair(2) -> [] (e[2].state != Closed)) }
ltl one { [] !(len(net) == 0 && pair(0) && pair(2)) }
/* When losses end, so does the renegotiation. */
ltl settles { <> [] agreed }
#endif
