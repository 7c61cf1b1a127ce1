// Package flow is `scaffold flow` and `scaffold explain`: the flows of hosts, their moves, and what happened to them. Both
// ask hosts' own daemons, for nobody else knows flows.
package flow
