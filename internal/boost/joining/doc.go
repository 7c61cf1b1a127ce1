// Package joining is an agent's side of the controllers of its network: it joins by a stream of the service Agent, is told
// which other agents there are and which lanes it has, and says how it fares (docs/protocol.md §9.2).
//
// While no controller is there, the agent goes on with what it was told last, and says that to the next one.
package joining
