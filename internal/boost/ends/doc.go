// Package ends has the sockets of an agent of boost that face end hosts (docs/protocol.md §9.1): to the client it is the
// server, by address and port, to the server it is the client.
//
// [Ends.Next] gives a SYN that is held, of a connection in one of the agent's lanes. The agent accepts it, lets it go on,
// refuses it or is silent; one that nobody decides about goes on. [Ends.Dial] connects to the server from the client's
// address. What comes back are ordinary connections of TCP, with three things to heed: [Ends.Finished] before CloseWrite
// or Close, once the other end has sent its FIN and all of its bytes were written, or the FIN leaves as RST; SetLinger(0)
// and Close to reset; and both connections closed before [Ends.Close].
//
// The agent calls [Ends.Beat] some times in each 200 ms. Without, new connections go on unboosted.
//
// All happens in the network namespace of the process.
package ends
