// Package network is `scaffold net`: a network as a whole, with its topology, paths, switches, and the key that certifies
// its members.
package network
