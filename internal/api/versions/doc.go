// Package versions says which versions of what daemons share this build speaks, and settles on one with a peer
// (docs/protocol.md §8). A number grows when a build of before could not work with what comes under it; what old
// builds may ignore, a new field or a new kind of record, changes no number.
package versions
