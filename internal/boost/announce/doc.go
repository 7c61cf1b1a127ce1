// Package announce is the frame by which an agent of boost is found at a port of a switch (docs/protocol.md §9.3): the switch
// passes it to its controller, which learns so at which port the agent is, and by which hardware address.
//
// Whoever has the frame can read it. Only a controller that has the agent's key knows that it is the agent's, and only from
// the number that it was not recorded: [Announcement.Proves] says nothing of that.
package announce
