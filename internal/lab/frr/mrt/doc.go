// Package mrt replays recorded routing updates (MRT, RFC 6396) into a running BGP daemon: it reads a recording
// and speaks BGP to the daemon as one more neighbour.
package mrt
