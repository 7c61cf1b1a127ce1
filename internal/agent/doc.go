// Package agent is what a router and its controller say to each other, whoever drives the router's data plane:
// the stream of internal/api with its beginning, its end and the next attempt (Router), and the rules of
// core/plan as that stream carries them (Encode, Decode).
package agent
