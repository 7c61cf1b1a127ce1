// Package oftables is what the tables of an OpenFlow switch hold so that it is a router of the network: flows,
// groups and meters made of the rules of internal/core/plan, of the modules' own entries, and of what is known of
// ports and neighbours. It does no I/O: [Tables.Drain] gives the messages that turn what the switch was told into
// what it should hold, [Tables.Learn] takes what was read back from it.
//
// The way of a packet, by tables from [Options.First] on:
//
//	0        ours?      frames to the router's MAC for an address of the network; the rest is left to others
//	arrival  where to?  own address, hop limit at its end, redirects and locators that are gone; what is not
//	                    resolved goes on to kind, all else to routes
//	kind     what?      retries are punted; marks what has no port: echoes and fragments
//	resolve  who?       (service, protocol, port): one target is written at once, several are a list
//	choose   which?     of a list, by bits of the source address
//	routes   next hop   longest prefix: hop limit, MACs, port
//	output   out        back out of where it came in needs saying in OpenFlow
//	size     how large? at ports that take less than others: what does not fit is punted
//
// A list of targets is either a select group of Open vSwitch's dp_hash, whose slots fall to the targets as their
// weights ask, or entries of the table choose, which divide the sources: their lower halves are socketIDs and thus
// random. The second way needs no extension, is exact with any weights and any number of targets, and depends on
// the source alone, so that echoes and all fragments of a datagram meet the same instance. See list.
package oftables
