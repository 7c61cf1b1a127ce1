// Package switchd drives OpenFlow switches as routers of the network. To the controller each switch is a
// router: switchd joins in its name, by the same stream as routerd, takes its rules and reports its links and
// hosts. To the switch it is an OpenFlow controller: it puts the rules into the switch's tables
// (internal/openflow/oftables), and does by packets punted and sent what a Linux router does by sockets.
//
// One goroutine owns each switch (a member), watches its hosts and answers what its tables cannot; modules
// (package controller) have one each and talk to switches through it. Greeting hosts and carrying their control
// channel, and finding links, are modules too, in this package.
package switchd
