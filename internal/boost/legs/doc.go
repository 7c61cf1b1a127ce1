// Package legs has the connections of an agent that come to it by rules of their own (docs/protocol.md §9.5): switches write the
// agent's address and a port of its own into their packets, and back, so that the agent may be anywhere.
//
// The controller tells of a client's first packet, and hears at which port the client is waited for; a far agent says from which
// port it connects, and does so once the server's switches know. Nothing begins while no controller is there, and what has begun
// goes on.
package legs
