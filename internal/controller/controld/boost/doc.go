// Package boost knows the agents of boost of a network and what operators want them to carry, and tells each agent its lanes
// (docs/protocol.md §9.2). Which agent carries what, [lane] decides; here is who is there, what is stored and what was told.
//
// An agent that loses this controller goes on with the lanes that it has. So its silence changes nothing for a while, and a
// controller that begins to lead tells nothing before the agents of before have come, or have had time to.
package boost
