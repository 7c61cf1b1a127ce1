// Package agent is what a router and its controller say to each other, whoever drives the router's data plane:
// its first report and what comes back (Router, over internal/api/member), and the rules of core/plan as the stream
// carries them (Encode, Decode).
package agent
