// Package lane decides which agents of boost carry which connections: from what an operator wants (entries), where agents
// are (sites) and how they are, it makes lanes, each of which has a near agent, far ones, and a part of its entry's
// connections by the low bits of the client's port (docs/protocol.md §9).
//
// [Check] says what is wrong with entries and sites before anything is changed. [Plan] is a pure function of a [State]: the
// same state gives the same lanes, also at another controller, and lanes that were planned before stay as they are where
// they can.
package lane
