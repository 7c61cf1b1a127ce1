// Package sid holds Scaffold's names and addresses as small comparable values, after net/netip.
//
// A serviceID says who, a locator says where, a socketID says which connection at one end.
// All three travel inside ordinary IPv6 addresses; Space says which prefixes carry them.
// Layout: docs/protocol.md §2. Source: SCAFFOLD (Princeton 2010) §3.
package sid
